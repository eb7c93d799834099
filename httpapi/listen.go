package httpapi

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// unixHost is the Host that clients of the Unix socket send.
const unixHost = "auditd"

// Listen opens the TCP address and the Unix socket; either may be empty. A
// taken port or socket is an error here and not later. The socket has mode
// 0600 in a directory of mode 0700.
func Listen(address, socket string) (listeners []net.Listener, err error) {
	defer func() {
		if err != nil {
			for _, l := range listeners {
				l.Close()
			}
			listeners = nil
		}
	}()
	if address != "" {
		l, err := net.Listen("tcp", address)
		if err != nil {
			if errors.Is(err, syscall.EADDRINUSE) {
				return listeners, fmt.Errorf("listen on %s: the address is in use, perhaps by another auditd (try `auditd doctor`)", address)
			}
			return listeners, fmt.Errorf("listen on %s: %w", address, err)
		}
		listeners = append(listeners, l)
	}
	if socket != "" {
		l, err := listenUnix(socket)
		if err != nil {
			return listeners, err
		}
		listeners = append(listeners, l)
	}
	if len(listeners) == 0 {
		return nil, errors.New("listen: neither an address nor a socket is configured")
	}
	return listeners, nil
}

func listenUnix(path string) (net.Listener, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create the socket's directory: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("look at the socket's directory: %w", err)
	}
	if perm := info.Mode().Perm(); perm&0o077 != 0 {
		return nil, fmt.Errorf("listen on %s: its directory has mode %#o, make it 0700", path, perm)
	}
	// A socket left by a killed daemon refuses connections and may go; one
	// that answers belongs to a living daemon.
	if info, err := os.Lstat(path); err == nil {
		if info.Mode()&os.ModeSocket == 0 {
			return nil, fmt.Errorf("listen on %s: there is a file that is no socket", path)
		}
		if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
			c.Close()
			return nil, fmt.Errorf("listen on %s: another auditd answers there", path)
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("remove the stale socket: %w", err)
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	if err := os.Chmod(path, 0o600); err != nil { // until here the directory keeps others out
		l.Close()
		return nil, fmt.Errorf("protect the socket: %w", err)
	}
	return l, nil
}
