package coordinator

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
type token uint64

// effectKind says which fields of an effect are set.
type effectKind uint8

// The effects, with their fields.
const (
	sendCommand   effectKind = iota + 1 // command to the agent of node
	openStream                          // of node anew: reconnect
	distrustNode                        // end the stream of node until trustNode
	trustNode                           // end what isolates node
	writeKeys                           // write, answered by wrote with token
	readKey                             // key, answered by hasRead with token
	readNodeKeys                        // the keys of node, answered by hasReadNode with token
	readFenceKeys                       // the records of fences, answered by hasReadFences
	grantLease                          // for request ids, answered by granted
	revokeLease                         // lease
	compactStore                        // up to revision, 0: nothing; answered by storeIsAt
	wakeAt                              // an input woken at or after at
	showChange                          // key of an object that has changed
	logEvent                            // event
	measureValue                        // metric and value
	askToResign                         // the term may be of no use to the agent of node: refusedBy or nothing
	endTerm                             // with err
	answerClient                        // token: result or status
	askSettled                          // answered by hasSettled with token
)

// effect is one thing that the leader wants done. Fields that the kind does not
// name are zero.
type effect struct {
	kind     effectKind
	token    token
	node     resource.NodeID
	command  grant.Command
	write    decision // without done
	key      string
	lease    record.LeaseID
	epoch    resource.Epoch
	revision resource.Revision
	at       time.Time
	event    event
	metric   metric
	value    float64
	err      error
	result   any
	status   *api.Status
	final    bool // of status: the request is not to be served again
}

// severity of an event.
type severity uint8

const (
	severityDebug severity = iota
	severityInfo
	severityWarn
	severityError
)

// event is one line for the log: a name in snake_case, and keys and values in
// turn.
type event struct {
	severity severity
	name     string
	fields   []any
}

// metric names a value that the leader measures.
type metric uint8

// The metrics. label says what distinguishes the series, where there are several.
const (
	metricCommits metric = iota + 1
	metricAborts
	metricEvictions
	metricPreemptions
	metricAstray
	metricViolations // label: reason
	metricFaults     // label: fault
	metricLatency    // seconds
	metricReserve    // seconds
	metricCommit     // seconds
	metricNodes
	metricSuspect
	metricUnapproved
	metricQueued
	metricRunning
)

// outbox collects the effects of one input, in order.
type outbox struct {
	effects []effect
}

func (o *outbox) add(e effect) { o.effects = append(o.effects, e) }

func (o *outbox) log(s severity, name string, fields []any) {
	o.add(effect{kind: logEvent, event: event{s, name, fields}})
}

func (o *outbox) debug(name string, fields ...any) { o.log(severityDebug, name, fields) }
func (o *outbox) info(name string, fields ...any)  { o.log(severityInfo, name, fields) }
func (o *outbox) warn(name string, fields ...any)  { o.log(severityWarn, name, fields) }
func (o *outbox) error(name string, fields ...any) { o.log(severityError, name, fields) }

// count adds one to a counter; label is "" where the metric has one series.
func (o *outbox) count(m metric, label string) {
	o.add(effect{kind: measureValue, metric: m, value: 1, key: label})
}

// measure observes a value, or sets a gauge.
func (o *outbox) measure(m metric, value float64) {
	o.add(effect{kind: measureValue, metric: m, value: value})
}

// changed says that an object's clients have something new to see.
func (o *outbox) changed(key string) { o.add(effect{kind: showChange, key: key}) }

// command hands the agent of a node a command.
func (o *outbox) command(node resource.NodeID, c grant.Command) {
	o.add(effect{kind: sendCommand, node: node, command: c})
}

// end ends the term.
func (o *outbox) end(why error) { o.add(effect{kind: endTerm, err: why}) }
