package lead

import (
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// This file holds the effects of the leader: the leader does nothing to the world
// by itself. Each input leaves a list of effects, which the term carries out in
// the order of the list.

// token names an answer that the leader waits for. A token is used once.
type Token uint64

// effectKind says which fields of an effect are set.
type effectKind uint8

// The effects, with their fields.
const (
	SendCommand   effectKind = iota + 1 // command to the agent of node
	OpenStream                          // of node anew: reconnect
	DistrustNode                        // end the stream of node until trustNode
	TrustNode                           // end what isolates node
	WriteKeys                           // write, answered by wrote with token
	ReadKey                             // key, answered by hasRead with token
	ReadNodeKeys                        // the keys of node, answered by hasReadNode with token
	ReadFenceKeys                       // the records of fences, answered by hasReadFences
	GrantLease                          // for request ids, answered by granted
	RevokeLease                         // lease
	CompactStore                        // up to revision, 0: nothing; answered by storeIsAt
	WakeAt                              // an input woken at or after at
	ShowChange                          // key of an object that has changed
	LogEvent                            // event
	MeasureValue                        // metric and value
	AskToResign                         // the term may be of no use to the agent of node: refusedBy or nothing
	EndTerm                             // with err
	AnswerClient                        // token: result or status
	AskSettled                          // answered by hasSettled with token
)

// effect is one thing that the leader wants done. Fields that the kind does not
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

// write is a set of keys that must be written together.
//
// Invariant: writes that are under way at one time write disjoint keys.
type Write struct {
	Compares []record.Compare
	Ops      []record.Op
	// anyEpoch leaves out the compare of the leader's key: only a fence may.
	AnyEpoch bool
}

// severity of an event.
type severity uint8

const (
	SeverityDebug severity = iota
	SeverityInfo
	SeverityWarn
	SeverityError
)

// event is one line for the log: a name in snake_case, and keys and values in
// turn.
type Event struct {
	Severity severity
	Name     string
	Fields   []any
}

// metric names a value that the leader measures.
type Metric uint8

// The metrics. label says what distinguishes the series, where there are several.
const (
	MetricCommits Metric = iota + 1
	MetricAborts
	MetricEvictions
	MetricPreemptions
	MetricAstray
	MetricViolations // label: reason
	MetricFaults     // label: fault
	MetricLatency    // seconds
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

// changed says that an object's clients have something new to see.
func (o *outbox) changed(key string) { o.add(Effect{Kind: ShowChange, Key: key}) }

// command hands the agent of a node a command.
func (o *outbox) command(node resource.NodeID, c grant.Command) {
	o.add(Effect{Kind: SendCommand, Node: node, Command: c})
}

// end ends the term.
func (o *outbox) end(why error) { o.add(Effect{Kind: EndTerm, Err: why}) }
