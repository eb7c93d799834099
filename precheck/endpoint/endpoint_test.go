package endpoint

import "testing"

func TestParseSeesThroughEveryFormOfAPrivateHost(t *testing.T) {
	for in, want := range map[string]Kind{
		"127.0.0.1": Loopback, "127.1": Loopback, "2130706433": Loopback, "0x7f000001": Loopback, "0177.0.0.1": Loopback,
		"0x7f.1": Loopback, "017700000001": Loopback, "0": Loopback, "0.0.0.0:80": Loopback, "[::1]:80": Loopback, "[::]": Loopback,
		"[::ffff:127.0.0.1]": Loopback, "[::ffff:7f00:1]": Loopback, "[64:ff9b::7f00:1]": Loopback, "[::127.0.0.1]": Loopback,
		"[2002:7f00:1::]": Loopback, "localhost": Loopback, "LOCALHOST.": Loopback, "a.localhost:3000": Loopback,
		"example.com@127.0.0.1": Loopback, "user:pw@localhost:5432": Loopback, "%31%32%37.0.0.1": Loopback,
		"127.0.0.1.nip.io": Rebind, "app.10-0-0-1.sslip.io": Rebind, "localtest.me": Loopback, "foo.lvh.me": Loopback,
		"10.1.2.3": Private, "192.168.0.1:8080": Private, "172.16.0.9": Private, "172.31.255.1": Private, "169.254.1.1": Private,
		"100.64.0.1": Private, "[fd12::1]": Private, "[fe80::1%25eth0]": Private, "167772161": Private,
		"169.254.169.254": Metadata, "2852039166": Metadata, "0xa9fea9fe": Metadata, "[::ffff:169.254.169.254]": Metadata,
		"metadata.google.internal": Metadata, "100.100.100.200": Metadata, "[fd00:ec2::254]": Metadata,
		"db.internal": Internal, "printer.local": Internal, "wiki.corp": Internal, "api.default.svc": Internal, "x.svc.cluster.local": Internal,
		"host.docker.internal:2375": Loopback, "localhost6": Loopback, "localhost6.localdomain6:80": Loopback,

		"example.com": Public, "8.8.8.8": Public, "172.32.0.1": Public, "localhost.example.com": Public, "127.0.0.1.example.com": Public,
		"[2001:db8::1]": Public, "1.2.3.4.5": Public, "999.1.1.1": Public, "nip.io": Public, "internal.example.com": Public,
		"127.0.0.1@example.com": Public, "": Public, "foo": Public, "1.1": Public,
	} {
		if got := Parse(in).Kind; got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

func TestParseReadsThePort(t *testing.T) {
	for in, want := range map[string]int{"localhost:3000": 3000, "[::1]:80": 80, "u:p@localhost": 0, "localhost:99999": 0, "127.1:7841": 7841} {
		if got := Parse(in).Port; got != want {
			t.Errorf("%q: port %d, want %d", in, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"127.1", "[::ffff:1.2.3.4]:80", "a@b@c:1", "%", "[", "0x", "1.2.3."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if e := Parse(s); int(e.Kind) >= len(kindNames) || e.Port < 0 || e.Port > 65535 {
			t.Errorf("%q: %+v", s, e)
		}
	})
}
