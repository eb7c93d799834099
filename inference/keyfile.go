package inference

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
)

// ReadKey reads an API key from a file: configuration names the file, so that
// no key stands in it. An empty name is no key.
func ReadKey(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read the API key: %w", err)
	}
	key := strings.TrimSpace(string(data))
	switch {
	case key == "":
		return "", fmt.Errorf("read the API key: %s is empty", file)
	case len(key) > 4096, strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", fmt.Errorf("read the API key: %s does not hold one key on one line", file)
	}
	return key, nil
}

// CheckURL parses the address of a model server. A key is sent in the clear to
// nobody but this machine.
func CheckURL(text string, withKey bool) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the address of the model server is not an http or https URL")
	}
	if u.User != nil {
		return nil, errors.New("the address of the model server holds a password; put it into a file")
	}
	host := u.Hostname()
	ip := net.ParseIP(host)
	if withKey && u.Scheme == "http" && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, errors.New("the address of the model server is not https, and the key would be sent in the clear")
	}
	return u, nil
}
