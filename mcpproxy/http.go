package mcpproxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// HTTP reaches a server by the streamable HTTP transport. header is sent with
// every request (for its credential).
//
// The SDK's transport learns the negotiated version from its own client, which
// is not used here; the header that the protocol asks for is therefore set
// here. Messages that a server sends outside any request (a changed list) need
// a stream that the SDK opens for its own client alone: they do not arrive, and
// lists are looked at whenever the client asks for them.
func HTTP(url string, header http.Header) mcp.Transport {
	t := &versioned{header: header}
	return &transport{inner: &mcp.StreamableClientTransport{Endpoint: url, DisableStandaloneSSE: true, HTTPClient: &http.Client{
		Transport: t,
		// A redirect would carry the credential to wherever it points.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, versioned: t}
}

type transport struct {
	inner     mcp.Transport
	versioned *versioned
}

func (t *transport) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.inner.Connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return &connection{c, t.versioned}, nil
}

// connection listens for the answer to initialize.
type connection struct {
	mcp.Connection
	versioned *versioned
}

func (c *connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if r, ok := m.(*jsonrpc.Response); ok && err == nil && r.Error == nil {
		c.versioned.learn(r.Result)
	}
	return m, err
}

// versioned adds headers to requests.
type versioned struct {
	header  http.Header
	mu      sync.Mutex
	version string // guarded by mu
}

func (v *versioned) learn(result []byte) {
	if !bytes.Contains(result, []byte(`"protocolVersion"`)) {
		return
	}
	var r struct {
		Version string                    `json:"protocolVersion"`
		Rest    map[string]jsontext.Value `json:",unknown"`
	}
	if json.Unmarshal(result, &r) != nil || len(r.Version) > 32 {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.version == "" {
		v.version = r.Version
	}
}

func (v *versioned) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, values := range v.header {
		r.Header[name] = values
	}
	v.mu.Lock()
	if v.version != "" && r.Header.Get("Mcp-Protocol-Version") == "" {
		r.Header.Set("Mcp-Protocol-Version", v.version)
	}
	v.mu.Unlock()
	return http.DefaultTransport.RoundTrip(r)
}

// Stdio is a client, or a server, on a pair of streams.
func Stdio(r io.Reader, w io.Writer) mcp.Transport {
	return &mcp.IOTransport{Reader: io.NopCloser(r), Writer: nopCloser{w}}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// Command is a server that is a program of its own. Its end is given a moment
// before it is killed.
func Command(cmd *exec.Cmd) mcp.Transport { return &mcp.CommandTransport{Command: cmd} }
