package policy

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"example.org/auditd/schema"
)

// costLimit bounds one evaluation, in CEL's cost units. Reading a payload of
// 1 MiB once costs about 100,000; the limit leaves room for some such reads
// and keeps the worst expression within milliseconds.
const costLimit = 2_000_000

// compiledRule is a rule that can run.
type compiledRule struct {
	rule  Rule
	late  bool // it reads the report, so it runs after the small auditor
	prg   cel.Program
	index int
}

// Match is what a rule decided. Matched is false when none applied; the zero
// Action then means nothing.
type Match struct {
	Matched bool
	Action  schema.Action
	Rule    string // its name
	Reason  string // the owner's words
	Late    bool   // a rule over the report
}

// compiler checks expressions. It is made once per file.
type compiler struct {
	env  *cel.Env
	vars map[string]Variable
}

// newCompiler builds the environment: no macros, so no loops, and every name
// typed, so that a typo is an error of the file and not a rule that never
// matches.
func newCompiler() (*compiler, error) {
	c := &compiler{vars: map[string]Variable{}}
	opts := []cel.EnvOption{
		cel.ClearMacros(), cel.ParserRecursionLimit(64), cel.ParserExpressionSizeLimit(maxWhen),
	}
	for _, v := range Variables() {
		c.vars[v.Name] = v
		opts = append(opts, cel.Variable(v.Name, v.celType))
	}
	env, err := cel.NewEnv(opts...)
	if err != nil {
		return nil, fmt.Errorf("couldn't build the expression environment: %w", err)
	}
	c.env = env
	return c, nil
}

// compile checks one rule and makes its program.
func (c *compiler) compile(r Rule) (compiledRule, error) {
	if !r.Then.Set || r.Then.Value == schema.RewriteAndContinue {
		return compiledRule{}, errors.New("then must be allow, defer_to_human or block")
	}
	if strings.TrimSpace(r.Name) == "" || len(r.Name) > maxText || len(r.Reason) > maxText {
		return compiledRule{}, fmt.Errorf("name must be set, and name and reason have at most %d bytes", maxText)
	}
	if r.When == "" || len(r.When) > maxWhen {
		return compiledRule{}, fmt.Errorf("when must have 1 to %d bytes", maxWhen)
	}
	checked, iss := c.env.Compile(r.When)
	if err := iss.Err(); err != nil {
		return compiledRule{}, fmt.Errorf("when: %w", firstIssue(iss))
	}
	if checked.OutputType() != cel.BoolType {
		return compiledRule{}, fmt.Errorf("when: is a %s, must be true or false", checked.OutputType())
	}
	root := ast.NavigateAST(checked.NativeRep())
	late, err := c.inspect(root)
	if err != nil {
		return compiledRule{}, fmt.Errorf("when: %w", err)
	}
	if r.Then.Value == schema.Allow && !c.names(root) {
		return compiledRule{}, errors.New("a rule that allows must name what it allows: compare sink.id, sink.tool, sink.action, " +
			"sink.destination, sink.host, source.id, source.host or payload with a constant, in every alternative")
	}
	prg, err := c.env.Program(checked, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(costLimit))
	if err != nil {
		return compiledRule{}, errors.New("when: cannot be compiled: is a regular expression in it wrong?")
	}
	return compiledRule{rule: r, late: late, prg: prg}, nil
}

func firstIssue(iss *cel.Issues) error {
	e := iss.Errors()[0]
	return fmt.Errorf("column %d: %s", e.Location.Column()+1, e.Message)
}

// inspect finds out whether the expression reads the report, and refuses
// regular expressions that are not constants: a flow must not bring its own.
func (c *compiler) inspect(root ast.NavigableExpr) (late bool, err error) {
	ast.MatchDescendants(root, func(e ast.NavigableExpr) bool {
		switch e.Kind() {
		case ast.IdentKind:
			late = late || strings.HasPrefix(e.AsIdent(), reportPrefix)
		case ast.CallKind:
			if e.AsCall().FunctionName() == "matches" {
				if _, ok := constantText(pattern(e.AsCall())); !ok {
					err = errors.New("the pattern of matches must be a constant")
				}
			}
		}
		return false
	})
	return late, err
}

// pattern returns the last argument of a call.
func pattern(call ast.CallExpr) ast.Expr {
	args := call.Args()
	return args[len(args)-1]
}

// names reports whether e can only hold where a naming variable compares with
// a constant that says something. To contain a text names nothing: whoever
// writes the rest around it decides what it means. A payload is named only
// whole.
func (c *compiler) names(e ast.Expr) bool {
	if e.Kind() != ast.CallKind {
		return false
	}
	call := e.AsCall()
	switch call.FunctionName() {
	case operators.LogicalAnd:
		return slices.ContainsFunc(call.Args(), c.names)
	case operators.LogicalOr:
		return !slices.ContainsFunc(call.Args(), func(e ast.Expr) bool { return !c.names(e) })
	case operators.Conditional:
		return c.names(call.Args()[1]) && c.names(call.Args()[2])
	case operators.Equals:
		a, b := call.Args()[0], call.Args()[1]
		return c.naming(a) && saysSomething(b) || c.naming(b) && saysSomething(a)
	case operators.In:
		return c.naming(call.Args()[0]) && saysSomething(call.Args()[1])
	case "startsWith", "endsWith":
		return call.IsMemberFunction() && c.naming(call.Target()) && !isPayload(call.Target()) && saysSomething(call.Args()[0])
	case "matches":
		subject := call.Args()[0]
		if call.IsMemberFunction() {
			subject = call.Target()
		}
		text, ok := constantText(pattern(call))
		return ok && c.naming(subject) && !isPayload(subject) && anchored(text)
	default:
		return false
	}
}

func isPayload(e ast.Expr) bool { return e.AsIdent() == "payload" }

// anchored: the pattern fixes how its subject starts.
func anchored(pattern string) bool {
	rest, ok := strings.CutPrefix(pattern, "^")
	re, err := regexp.Compile(pattern)
	return ok && err == nil && !strings.ContainsAny(pattern, "|") && len(rest) > 2 && !strings.ContainsAny(rest[:2], ".*?+[({\\$") && !re.MatchString("")
}

func (c *compiler) naming(e ast.Expr) bool {
	return e.Kind() == ast.IdentKind && c.vars[e.AsIdent()].naming
}

// saysSomething: a constant of some length, or a list of such.
func saysSomething(e ast.Expr) bool {
	if e.Kind() == ast.ListKind {
		elements := e.AsList().Elements()
		return len(elements) > 0 && !slices.ContainsFunc(elements, func(e ast.Expr) bool { return !saysSomething(e) })
	}
	text, ok := constantText(e)
	return ok && len(strings.TrimSpace(text)) > 1
}

func constantText(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}

// holds evaluates the rule. An error, such as a cost limit that was reached, is
// the caller's reason to stop the flow.
func (r compiledRule) holds(vars map[string]Variable, f *Facts) (bool, error) {
	out, _, err := r.prg.Eval(activation{vars, f})
	if err != nil {
		return false, fmt.Errorf("rule %q could not be evaluated", r.rule.Name)
	}
	b, ok := out.(types.Bool)
	if !ok {
		return false, fmt.Errorf("rule %q gave no truth value", r.rule.Name)
	}
	return bool(b), nil
}
