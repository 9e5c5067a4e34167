package post

import (
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file holds the effects of the leader. The leader acts on the world through them
// alone: each input leaves a list of effects, and the coordinator carries them out
// in the order of the list.

// Token names an answer that the leader waits for. A token is used once.
type Token uint64

// Kind decides the fields of an effect.
type Kind uint8

// The effects, with their fields.
const (
	SendCommand   Kind = iota + 1 // command to the agent of node
	OpenStream                    // to the agent of node: reconnect
	DistrustNode                  // end the stream of node until TrustNode
	TrustNode                     // ends a DistrustNode of node
	WriteKeys                     // write, answered by WriteAnswer with token
	ReadKey                       // key, answered by ReadAnswer with token
	ReadNodeKeys                  // the keys of node, answered by NodeReadAnswer with token
	ReadFenceKeys                 // the records of fences, answered by FenceReadAnswer
	GrantLease                    // for request ids, answered by LeaseAnswer
	RevokeLease                   // lease
	CompactStore                  // up to revision, 0: only the question; answered by CompactAnswer
	WakeAt                        // an AlarmDue at or after at
	LogEvent                      // event
	MeasureValue                  // metric and value
	AskToResign                   // the agent of node refuses the epoch; answered by ResignAllowed, or not at all
	EndTerm                       // with err
	AnswerClient                  // token: result or status
	AskSettled                    // answered by SettleAnswer with token
)

// Effect is one action that the leader asks of the coordinator. Fields without a use in the kind
// are zero.
type Effect struct {
	Kind     Kind
	Token    Token
	Node     resource.NodeID
	Command  grant.Command
	Write    Write
	Key      string
	Lease    record.LeaseID
	Epoch    resource.Epoch
	Revision resource.Revision
	At       time.Time
	Event    Event
	Metric   Metric
	Value    float64
	Err      error
	Result   any
	Status   *api.Status
	Final    bool // of status: the request is not to be served again
}

// Write is a set of keys that must be written together.
//
// Writes of the same key that are under way together land in any order.
// There are few: two fences of a node, each of which compares the identity, and
// a fence of a transaction whose record is being collected.
type Write struct {
	Compares []record.Compare
	Ops      []record.Op
	// AnyEpoch leaves out the compare of the leader's key: only a fence may. Once: batch.Write.
	AnyEpoch, Once bool
}

// Severity of an event.
type Severity uint8

const (
	SeverityDebug Severity = iota
	SeverityInfo
	SeverityWarn
	SeverityError
)

// Event is a line for the log: a name in snake_case, and keys and values in
// turn.
type Event struct {
	Severity Severity
	Name     string
	Fields   []any
}

// Metric names a value that the leader measures.
type Metric uint8

// The metrics. A label distinguishes the series, where a metric has several.
const (
	MetricCommits Metric = iota + 1
	MetricAborts
	MetricEvictions
	MetricPreemptions
	MetricMissedWakes // units that only the backstop had tried in time
	MetricAstray
	MetricViolations // label: reason
	MetricFaults     // label: fault
	MetricLatency    // seconds
	MetricWait       // seconds
	MetricReserve    // seconds
	MetricCommit     // seconds
	MetricNodes
	MetricSuspect
	MetricUnapproved
	MetricQueued
	MetricRunning
)

// Begin begins an input at a time; the effects are appended to out until Take.
func (p *Post) Begin(now time.Time, out []Effect) {
	if p.open {
		panic("post: an input begins within another")
	}
	p.now, p.effects, p.open = now, out, true
}

// Take ends the input, and returns its effects behind those of Begin.
func (p *Post) Take() []Effect {
	out := p.effects
	p.effects, p.open = nil, false
	return out
}

// Effects are the effects of the present input so far.
func (p *Post) Effects() []Effect { return p.effects }

// Add adds an effect.
func (p *Post) Add(e Effect) { p.effects = append(p.effects, e) }

func (p *Post) log(s Severity, name string, fields []any) {
	p.Add(Effect{Kind: LogEvent, Event: Event{s, name, fields}})
}

func (p *Post) Debug(name string, fields ...any) { p.log(SeverityDebug, name, fields) }
func (p *Post) Info(name string, fields ...any)  { p.log(SeverityInfo, name, fields) }
func (p *Post) Warn(name string, fields ...any)  { p.log(SeverityWarn, name, fields) }
func (p *Post) Error(name string, fields ...any) { p.log(SeverityError, name, fields) }

// Count adds one to a counter; label is "" where the metric has a single series.
func (p *Post) Count(m Metric, label string) {
	p.Add(Effect{Kind: MeasureValue, Metric: m, Value: 1, Key: label})
}

// Measure observes a value, or sets a gauge.
func (p *Post) Measure(m Metric, value float64) {
	p.Add(Effect{Kind: MeasureValue, Metric: m, Value: value})
}

// Command sends a command to the agent of a node.
func (p *Post) Command(node resource.NodeID, c grant.Command) {
	p.Add(Effect{Kind: SendCommand, Node: node, Command: c})
}

// End ends the term.
func (p *Post) End(why error) { p.Add(Effect{Kind: EndTerm, Err: why}) }
