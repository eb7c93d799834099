// Package endpoint says whether a host names something that only this machine
// or its network can reach. Attackers write such hosts in every form that some
// URL parser accepts: decimal, octal, hexadecimal and short IPv4 numbers,
// IPv4 inside IPv6, names whose DNS answers with a private address, user
// information in front of the host. It resolves nothing: an answer may change
// between a check and its use.
package endpoint

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// Kind is what a host reaches. The zero Kind is a public host.
type Kind uint8

// Kinds of hosts.
const (
	Public   Kind = iota
	Loopback      // this machine
	Private       // a private, link-local or carrier-grade NAT address
	Metadata      // a cloud's metadata service: credentials for the asking
	Internal      // a name that only a private DNS knows
	Rebind        // a public name whose DNS can answer with any address
)

var kindNames = [...]string{"public", "loopback", "private", "metadata", "internal", "rebinding"}

func (k Kind) String() string { return kindNames[k] }

// Endpoint is a parsed authority.
type Endpoint struct {
	Kind Kind
	Host string // canonical: lower case, without a trailing dot; an address in its usual form
	Port int    // 0 when none is named
}

// Parse reads an authority: [userinfo@]host[:port]. The text must already be
// folded (package normalise), so that full-width digits are digits.
func Parse(authority string) Endpoint {
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		authority = authority[i+1:]
	}
	if strings.IndexByte(authority, '%') >= 0 {
		if u, err := url.PathUnescape(authority); err == nil {
			authority = u
			if i := strings.LastIndexByte(authority, '@'); i >= 0 {
				authority = authority[i+1:]
			}
		}
	}
	host, port := authority, 0
	if strings.HasPrefix(host, "[") {
		if i := strings.IndexByte(host, ']'); i > 0 {
			port = number(strings.TrimPrefix(host[i+1:], ":"))
			host = host[1:i]
		}
	} else if i := strings.LastIndexByte(host, ':'); i >= 0 && strings.IndexByte(host, ':') == i {
		port = number(host[i+1:])
		host = host[:i]
	}
	host = strings.TrimRight(strings.ToLower(host), ".")
	if addr, ok := Address(host); ok {
		return Endpoint{Kind: kindOf(addr), Host: addr.String(), Port: port}
	}
	return Endpoint{Kind: kindOfName(host), Host: host, Port: port}
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > 65535 {
		return 0
	}
	return n
}

// Address reads an IP address in any form that a resolver's inet_aton or a URL
// parser accepts.
func Address(host string) (netip.Addr, bool) {
	if i := strings.IndexByte(host, '%'); i >= 0 { // zone
		host = host[:i]
	}
	if strings.IndexByte(host, ':') >= 0 {
		a, err := netip.ParseAddr(host)
		if err != nil {
			return netip.Addr{}, false
		}
		return inner(a), true
	}
	return inetAton(host)
}

// inetAton reads one to four numbers, each decimal, octal (0…) or hexadecimal
// (0x…), the last of which fills the bytes that are left.
func inetAton(host string) (netip.Addr, bool) {
	if host == "" || len(host) > 64 || host[0] < '0' || host[0] > '9' {
		return netip.Addr{}, false
	}
	var parts [4]uint64
	n := 0
	for host != "" || n == 0 {
		if n == 4 {
			return netip.Addr{}, false
		}
		part, rest, more := strings.Cut(host, ".")
		v, ok := aton(part)
		if !ok || more && rest == "" {
			return netip.Addr{}, false
		}
		parts[n] = v
		n++
		host = rest
	}
	var v uint64
	for i := range n - 1 {
		if parts[i] > 255 {
			return netip.Addr{}, false
		}
		v |= parts[i] << (24 - 8*i)
	}
	if parts[n-1] >= 1<<(8*(5-n)) {
		return netip.Addr{}, false
	}
	v |= parts[n-1]
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}), true
}

func aton(s string) (uint64, bool) {
	base := 10
	switch {
	case strings.HasPrefix(s, "0x"):
		s, base = s[2:], 16
		if s == "" {
			return 0, true
		}
	case len(s) > 1 && s[0] == '0':
		s, base = s[1:], 8
	}
	v, err := strconv.ParseUint(s, base, 32)
	return v, err == nil
}

// inner takes the IPv4 address out of the IPv6 forms that carry one.
func inner(a netip.Addr) netip.Addr {
	a = a.WithZone("").Unmap()
	if a.Is4() {
		return a
	}
	b := a.As16()
	v4 := func(i int) netip.Addr { return netip.AddrFrom4([4]byte(b[i : i+4])) }
	switch {
	case prefix(b, 0, 0x64, 0xff, 0x9b): // NAT64
		return v4(12)
	case b[0] == 0x20 && b[1] == 0x02: // 6to4
		return v4(2)
	case prefix(b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) && (b[12] != 0 || b[13] != 0): // ::a.b.c.d
		return v4(12)
	}
	return a
}

func prefix(b [16]byte, want ...byte) bool {
	for i, w := range want {
		if b[i] != w {
			return false
		}
	}
	return true
}

// metadata holds the addresses at which clouds hand out credentials.
var metadata = map[netip.Addr]bool{
	netip.MustParseAddr("169.254.169.254"): true, // AWS, Azure, Google, and others
	netip.MustParseAddr("169.254.170.2"):   true, // AWS ECS
	netip.MustParseAddr("169.254.170.23"):  true, // AWS EKS
	netip.MustParseAddr("100.100.100.200"): true, // Alibaba
	netip.MustParseAddr("192.0.0.192"):     true, // Oracle
	netip.MustParseAddr("168.63.129.16"):   true, // Azure wire server
	netip.MustParseAddr("fd00:ec2::254"):   true, // AWS over IPv6
	netip.MustParseAddr("fd20:ce::254"):    true, // Google over IPv6
}

var cgnat = netip.MustParsePrefix("100.64.0.0/10")

func kindOf(a netip.Addr) Kind {
	switch {
	case metadata[a]:
		return Metadata
	case a.IsLoopback(), a.IsUnspecified(), a.Is4() && a.As4()[0] == 0: // 0.0.0.0 reaches this machine on Linux
		return Loopback
	case a.IsPrivate(), a.IsLinkLocalUnicast(), a.Is4() && cgnat.Contains(a):
		return Private
	}
	return Public
}

// rebinders answer with the address that is written in the name, or with one
// that changes. Some always answer 127.0.0.1.
var rebinders = map[string]Kind{
	"nip.io": Rebind, "sslip.io": Rebind, "xip.io": Rebind, "rbndr.us": Rebind, "1u.ms": Rebind, "traefik.me": Rebind,
	"backname.io": Rebind, "localtest.me": Loopback, "lvh.me": Loopback, "vcap.me": Loopback, "lacolhost.com": Loopback,
	"localhost.direct": Loopback, "local.gd": Loopback,
}

var names = map[string]Kind{
	"localhost": Loopback, "localhost.localdomain": Loopback, "ip6-localhost": Loopback, "ip6-loopback": Loopback,
	"localhost4": Loopback, "localhost6": Loopback, "localhost4.localdomain4": Loopback, "localhost6.localdomain6": Loopback, "ip6-localnet": Private,
	"host.docker.internal": Loopback, "gateway.docker.internal": Loopback, "host.containers.internal": Loopback, "host.lima.internal": Loopback,
	"metadata": Metadata, "metadata.google.internal": Metadata, "metadata.goog": Metadata, "instance-data": Metadata,
	"instance-data.ec2.internal": Metadata, "metadata.tencentyun.com": Metadata, "kubernetes": Internal, "kubernetes.default": Internal,
}

// suffixes that no public name has.
var suffixes = map[string]Kind{
	"localhost": Loopback, "local": Internal, "internal": Internal, "corp": Internal, "lan": Internal, "intranet": Internal,
	"home": Internal, "localdomain": Internal, "private": Internal, "svc": Internal,
}

func kindOfName(host string) Kind {
	if k, ok := names[host]; ok {
		return k
	}
	last := host
	if i := strings.LastIndexByte(host, '.'); i >= 0 {
		last = host[i+1:]
	} else {
		return Public // one bare word: a name of the caller's own network, or no host at all
	}
	if k, ok := suffixes[last]; ok {
		return k
	}
	if strings.HasSuffix(host, ".home.arpa") {
		return Internal
	}
	// The registrable part of a rebinding name is its last two labels.
	if i := strings.LastIndexByte(host[:len(host)-len(last)-1], '.'); i >= 0 {
		if k, ok := rebinders[host[i+1:]]; ok {
			return k
		}
	} else if k, ok := rebinders[host]; ok && k == Loopback {
		return k
	}
	return Public
}
