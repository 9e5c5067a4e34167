package coordinator

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/musterd/muster/coordinator/decisions"
	"github.com/musterd/muster/coordinator/lead"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/test/canonical"
)

// Recording is one term: its beginning, and each input with the effects that the
// leader left. Times and contents are the term's own.
type Recording struct {
	Beginning lead.Beginning
	steps     []recordedStep
	decided   []decided
}

// recordedStep is one call of the leader: Load, Apply, or Pass where both inputs are nil.
// read is the canonical text of the input before the call, left of the effects.
type recordedStep struct {
	now    time.Time
	loaded *lead.Loaded
	in     lead.Input
	look   bool // Coordinator.Check looked at the leader: it derives the occupants then
	read   string
	left   string
}

func (s *recordedStep) text() string {
	if s.loaded != nil {
		return canonical.Text(s.loaded)
	}
	return canonical.Text([]lead.Input{s.in})
}

// decided is a record of the decision log, and the log's answer.
type decided struct {
	text  string
	again bool
}

// Record has each term of a coordinator recorded, and its decision log with it.
func (c *Config) Record(r *Recorder) {
	log := &recordingLog{log: c.Decisions}
	c.Decisions = log
	c.observe = func(t *term, b lead.Beginning) {
		rec := &Recording{Beginning: b}
		log.rec = rec
		t.observeLoad = func(now time.Time, in lead.Loaded) { rec.took(recordedStep{now: now, loaded: &in}) }
		t.observe = func(now time.Time, in lead.Input) { rec.took(recordedStep{now: now, in: in}) }
		t.observeEffects = func(effects []post.Effect) { rec.steps[len(rec.steps)-1].left = canonical.Text(effects) }
		r.mu.Lock()
		defer r.mu.Unlock()
		r.terms = append(r.terms, rec)
	}
}

func (r *Recording) looked() {
	r.took(recordedStep{look: true, left: canonical.Text([]post.Effect(nil))})
}

func (r *Recording) took(s recordedStep) {
	s.read = s.text()
	r.steps = append(r.steps, s)
}

// Recorder keeps the recordings of several coordinators.
type Recorder struct {
	mu    sync.Mutex
	terms []*Recording
}

// Terms lists the recordings. The coordinators must have ended.
func (r *Recorder) Terms() []*Recording { return r.terms }

// Len counts the steps.
func (r *Recording) Len() int { return len(r.steps) }

// Kinds counts the inputs by type.
func (r *Recording) Kinds() map[string]int {
	kinds := map[string]int{}
	for _, s := range r.steps {
		name := fmt.Sprintf("%T", s.in)
		switch in := s.in.(type) {
		case lead.AgentEvent:
			name = fmt.Sprintf("%T", in.Event)
		case lead.ClientRequest:
			name = fmt.Sprintf("%T", in.Request)
		}
		kinds[name]++
	}
	return kinds
}

// recordingLog hands a term's decisions on to the coordinator's own log.
type recordingLog struct {
	log lead.DecisionLog
	rec *Recording
}

func (l *recordingLog) Append(r decisions.Record) bool {
	again := l.log.Append(r)
	l.rec.decided = append(l.rec.decided, decided{string(decisions.Encode(r)), again})
	return again
}

// replayLog answers a replayed leader as the log of the term did.
type replayLog struct {
	rec   *Recording
	texts []string
}

func (l *replayLog) Append(r decisions.Record) bool {
	i := len(l.texts)
	l.texts = append(l.texts, string(decisions.Encode(r)))
	return i < len(l.rec.decided) && l.rec.decided[i].again
}

// Replay hands a new leader the recorded inputs and returns the first difference
// between its effects and decisions and those of the term; "" for none. An input
// that a leader has changed, and an effect that changed after the leader left
// it, are differences too.
func (r *Recording) Replay() string {
	b, log := r.Beginning, &replayLog{rec: r}
	b.Rules.Decisions = log
	l := lead.NewLeader(b)
	effects := make([][]post.Effect, len(r.steps))
	for i, s := range r.steps {
		switch {
		case s.look:
			if l.Check() == nil && !l.Busy() {
				l.Overlooked()
			}
		case s.loaded != nil:
			effects[i], _ = l.Load(s.now, *s.loaded, nil)
		case s.in != nil:
			effects[i] = l.Apply(s.now, s.in, nil)
		default:
			effects[i] = l.Pass(s.now, nil)
		}
		if got := canonical.Text(effects[i]); got != s.left {
			return fmt.Sprintf("step %d of %d leaves other effects after %s\nterm:   %s\nreplay: %s", i, len(r.steps), s.read, s.left, got)
		}
	}
	for i, s := range r.steps {
		if got := s.text(); got != s.read {
			return fmt.Sprintf("the input of step %d has changed\nbefore: %s\nafter:  %s", i, s.read, got)
		}
		if got := canonical.Text(effects[i]); got != s.left {
			return fmt.Sprintf("the effects of step %d have changed after %s\nbefore: %s\nafter:  %s", i, s.read, s.left, got)
		}
	}
	want := make([]string, len(r.decided))
	for i, d := range r.decided {
		want[i] = d.text
	}
	if !slices.Equal(log.texts, want) {
		for i := range min(len(want), len(log.texts)) {
			if want[i] != log.texts[i] {
				return fmt.Sprintf("decision %d differs\nterm:   %s\nreplay: %s", i, want[i], log.texts[i])
			}
		}
		return fmt.Sprintf("the term made %d decisions, the replay %d", len(want), len(log.texts))
	}
	return ""
}
