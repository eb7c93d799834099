package mcpproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"example.org/auditd/schema"
)

// Host is the host's name in events.
const Host = "mcp"

// unknownAgent is the agent's name until the client has said its own.
const unknownAgent = "client"

// maxInFlight bounds the requests that are looked at at the same time, in each
// direction; more wait.
const maxInFlight = 32

// Config is what a Proxy is made of. Report, Pins and Logger must be set.
type Config struct {
	// Server names the server in tool names (mcp__SERVER__TOOL, as Claude Code
	// names them) and in the pins.
	Server string
	// Session is the session that events are reported under.
	Session string
	// Report decides an event. Its outcome stops when there is an error.
	Report func(context.Context, *schema.Event) (schema.Outcome, error)
	// Answered returns a person's answer to a question; nil: none ever comes.
	Answered func(ctx context.Context, id string) string
	// Workspace is the folder that the client works in, if it is known.
	Workspace string

	Pins   *Pins
	Logger *slog.Logger
}

// Proxy carries the messages of one client and one server.
type Proxy struct {
	cfg    Config
	client mcp.Connection
	server mcp.Connection

	mu       sync.Mutex
	agent    string                   // the client's name; guarded by mu
	toServer map[jsonrpc.ID]*exchange // requests of the client that wait for the server; guarded by mu
	toClient map[jsonrpc.ID]*exchange // and the other way round; guarded by mu
	refused  map[string]string        // tools that were kept out of a list, and why; guarded by mu
	slots    [2]chan struct{}
}

// exchange is a request whose answer has not come.
type exchange struct {
	method    string
	params    []byte
	tool      string // of tools/call
	cancelled bool
	stop      context.CancelFunc // of the look at its request
}

// New returns a proxy that carries nothing yet.
func New(cfg Config) (*Proxy, error) {
	if cfg.Report == nil || cfg.Pins == nil || cfg.Logger == nil {
		return nil, errors.New("mcpproxy: Report, Pins and Logger must be set")
	}
	cfg.Server = cleanName(cfg.Server)
	return &Proxy{cfg: cfg, agent: unknownAgent, toServer: map[jsonrpc.ID]*exchange{}, toClient: map[jsonrpc.ID]*exchange{}, refused: map[string]string{},
		slots: [2]chan struct{}{make(chan struct{}, maxInFlight), make(chan struct{}, maxInFlight)}}, nil
}

// cleanName keeps what may stand in a tool's name.
func cleanName(s string) string {
	s = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.' {
			return r
		}
		return '_'
	}, s)
	if len(s) > 64 {
		s = s[:64]
	}
	if s == "" {
		return "server"
	}
	return s
}

// Run carries messages until either side ends or ctx does. The end of a side
// is no error.
func (p *Proxy) Run(ctx context.Context, client, server mcp.Transport) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var err error
	if p.server, err = server.Connect(ctx); err != nil {
		return fmt.Errorf("reach the MCP server: %w", err)
	}
	defer p.server.Close()
	if p.client, err = client.Connect(ctx); err != nil {
		return fmt.Errorf("answer the MCP client: %w", err)
	}
	defer p.client.Close()
	ended := make(chan error, 2)
	go func() { ended <- p.read(ctx, "client", p.client, p.fromClient) }()
	go func() { ended <- p.read(ctx, "server", p.server, p.fromServer) }()
	select {
	case err = <-ended:
	case <-ctx.Done():
	}
	return err
}

func (p *Proxy) read(ctx context.Context, who string, c mcp.Connection, handle func(context.Context, jsonrpc.Message)) error {
	for {
		m, err := c.Read(ctx)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, mcp.ErrConnectionClosed), ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("read from the MCP %s: %w", who, err)
		}
		handle(ctx, m)
	}
}

// guard runs look on a goroutine of its own, within the bound of side, so that
// a cancellation can overtake what is being looked at. A panic in it answers
// what it was about.
func (p *Proxy) guard(side int, look, failed func()) {
	p.slots[side] <- struct{}{}
	go func() {
		defer func() {
			<-p.slots[side]
			if v := recover(); v != nil {
				p.cfg.Logger.Error("looking at an MCP message panicked", "type", fmt.Sprintf("%T", v))
				failed()
			}
		}()
		look()
	}()
}

func (p *Proxy) send(ctx context.Context, to mcp.Connection, m jsonrpc.Message) {
	if err := to.Write(ctx, m); err != nil && ctx.Err() == nil {
		p.cfg.Logger.WarnContext(ctx, "an MCP message could not be delivered", "error", err)
		if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() && to == p.server {
			p.take(p.toServer, r.ID)
			p.answerError(ctx, p.client, r.ID, "auditd could not reach the MCP server")
		}
	}
}

// take removes and returns the exchange under id; nil when there is none.
func (p *Proxy) take(from map[jsonrpc.ID]*exchange, id jsonrpc.ID) *exchange {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := from[id]
	delete(from, id)
	return x
}

// begin notes a request; false when its id is taken, which would let one
// answer pass for another's.
func (p *Proxy) begin(in map[jsonrpc.ID]*exchange, id jsonrpc.ID, x *exchange) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, taken := in[id]; taken {
		return false
	}
	in[id] = x
	return true
}

func (p *Proxy) answerError(ctx context.Context, to mcp.Connection, id jsonrpc.ID, message string) {
	p.send(ctx, to, &jsonrpc.Response{ID: id, Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: message}})
}
