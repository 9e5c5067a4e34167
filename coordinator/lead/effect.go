package lead

import (
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file holds the effects of the leader. The leader does nothing to the world by
// itself: each input leaves a list of effects, and the coordinator carries them out
// in the order of the list.

// Token names an answer that the leader waits for. A token is used once.
type Token uint64

// effectKind says which fields of an effect are set.
type effectKind uint8

// The effects, with their fields.
const (
	SendCommand   effectKind = iota + 1 // command to the agent of node
	OpenStream                          // to the agent of node: reconnect
	DistrustNode                        // end the stream of node until TrustNode
	TrustNode                           // ends a DistrustNode of node
	WriteKeys                           // write, answered by WriteAnswer with token
	ReadKey                             // key, answered by ReadAnswer with token
	ReadNodeKeys                        // the keys of node, answered by NodeReadAnswer with token
	ReadFenceKeys                       // the records of fences, answered by FenceReadAnswer
	GrantLease                          // for request ids, answered by LeaseAnswer
	RevokeLease                         // lease
	CompactStore                        // up to revision, 0: nothing; answered by CompactAnswer
	WakeAt                              // an AlarmDue at or after at
	LogEvent                            // event
	MeasureValue                        // metric and value
	AskToResign                         // the agent of node refuses the epoch; answered by ResignAllowed, or not at all
	EndTerm                             // with err
	AnswerClient                        // token: result or status
	AskSettled                          // answered by SettleAnswer with token
)

// Effect is one action that the leader asks of the coordinator. Fields that the kind does not
// name are zero.
type Effect struct {
	Kind     effectKind
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
// Writes that are under way at one time and write the same key land in any order.
// There are few: two fences of one node, each of which compares the identity, and
// a fence of a transaction whose record is being collected.
type Write struct {
	Compares []record.Compare
	Ops      []record.Op
	// AnyEpoch leaves out the compare of the leader's key: only a fence may. Once: batch.Write.
	AnyEpoch, Once bool
}

// severity of an event.
type severity uint8

const (
	SeverityDebug severity = iota
	SeverityInfo
	SeverityWarn
	SeverityError
)

// Event is one line for the log: a name in snake_case, and keys and values in
// turn.
type Event struct {
	Severity severity
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

// outbox collects the effects of one input, in order.
type outbox struct {
	effects []Effect
}

func (o *outbox) add(e Effect) { o.effects = append(o.effects, e) }

func (o *outbox) log(s severity, name string, fields []any) {
	o.add(Effect{Kind: LogEvent, Event: Event{s, name, fields}})
}

func (o *outbox) debug(name string, fields ...any) { o.log(SeverityDebug, name, fields) }
func (o *outbox) info(name string, fields ...any)  { o.log(SeverityInfo, name, fields) }
func (o *outbox) warn(name string, fields ...any)  { o.log(SeverityWarn, name, fields) }
func (o *outbox) error(name string, fields ...any) { o.log(SeverityError, name, fields) }

// count adds one to a counter; label is "" where the metric has one series.
func (o *outbox) count(m Metric, label string) {
	o.add(Effect{Kind: MeasureValue, Metric: m, Value: 1, Key: label})
}

// measure observes a value, or sets a gauge.
func (o *outbox) measure(m Metric, value float64) {
	o.add(Effect{Kind: MeasureValue, Metric: m, Value: value})
}

// command sends a command to the agent of a node.
func (o *outbox) command(node resource.NodeID, c grant.Command) {
	o.add(Effect{Kind: SendCommand, Node: node, Command: c})
}

// end ends the term.
func (o *outbox) end(why error) { o.add(Effect{Kind: EndTerm, Err: why}) }
