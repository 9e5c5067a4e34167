package lead_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/coordinator/store"
	"github.com/musterd/muster/resource"
	"github.com/musterd/muster/test/storydoc"
)

// This file shows effects to people. Metrics, changes that clients watch and
// debug lines of the log are left out.

// name is the short name of a transaction: tx1 is the first that was mentioned.
func (s *story) name(tx resource.TxID) string {
	i := slices.Index(s.txs, tx)
	if i < 0 {
		i = len(s.txs)
		s.txs = append(s.txs, tx)
	}
	return fmt.Sprintf("tx%d", i+1)
}

// named replaces transactions by their short names.
func (s *story) named(text string) string {
	for i, tx := range s.txs {
		text = strings.ReplaceAll(text, string(tx), fmt.Sprintf("tx%d", i+1))
	}
	return text
}

// showStored shows the keys of the store below a prefix, with their values.
func (s *story) showStored(prefix string) {
	kvs, _, err := s.store.Range(s.t.Context(), record.Root+prefix, store.RangeOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, kv := range kvs {
		fmt.Fprintf(&s.told, "  %s is %s\n", s.key(kv.Key), s.named(string(kv.Value)))
	}
}

func (s *story) show(e post.Effect) string {
	switch e.Kind {
	case post.SendCommand:
		return fmt.Sprintf("tell %s: %s", e.Node, storydoc.Command(e.Command, s.name))
	case post.WriteKeys:
		return fmt.Sprintf("write %d: %s", e.Token, s.named(storydoc.Write(e.Write, s.key)))
	case post.ReadKey:
		return fmt.Sprintf("read %d: %s", e.Token, s.key(e.Key))
	case post.AnswerClient:
		return s.named(storydoc.Answer(e, s.name))
	case post.WakeAt:
		return fmt.Sprintf("wake in %v", e.At.Sub(s.now).Round(time.Millisecond))
	case post.AskSettled:
		return "ask whether all writes so far have settled"
	case post.LogEvent:
		if e.Event.Severity == post.SeverityDebug {
			return ""
		}
		text := "log " + e.Event.Name
		for i := 0; i+1 < len(e.Event.Fields); i += 2 {
			text += fmt.Sprintf(" %v=%v", e.Event.Fields[i], e.Event.Fields[i+1])
		}
		return s.named(text)
	case post.EndTerm:
		return "end the term: " + e.Err.Error()
	}
	return ""
}

// key names a key of the store.
func (s *story) key(key string) string {
	if tx, err := record.ParseTxKey(key); err == nil {
		return s.name(tx)
	}
	if unit, err := record.ParseUnitKey(key); err == nil {
		return "unit " + unit.String()
	}
	if strings.HasPrefix(key, record.OrderPrefix) {
		return "place in the queue"
	}
	return s.named(strings.TrimPrefix(key, record.Root))
}

// showObject tells what a get of an allocation, or of a job, answers.
func (s *story) showObject(namespace, name string) {
	index := s.l.Show()
	if m, found := index.Member(namespace + "/" + name); found {
		a := m.Show()
		fmt.Fprintf(&s.told, "  allocation %s is %s: %s\n", name, a.Status.Phase, a.Status.Message)
		s.showUnsatisfiable(a.Status.Conditions)
		return
	}
	if j, found := index.Job(namespace + "/" + name); found {
		o := j.Show()
		fmt.Fprintf(&s.told, "  job %s is %s: %s\n", name, o.Status.Phase, o.Status.Message)
		s.showUnsatisfiable(o.Status.Conditions)
		for _, m := range o.Status.Allocations {
			fmt.Fprintf(&s.told, "    %s is %s\n", m.Name, m.Phase)
		}
		for _, d := range o.Status.Dependencies {
			fmt.Fprintf(&s.told, "    %s:%s is %s\n", d.Type, d.Job, d.State)
		}
		return
	}
	fmt.Fprintf(&s.told, "  %s is not found\n", name)
}

// showTree tells a quota tree as the leader has it.
func (s *story) showTree(name string) {
	t, status := s.l.ShowTree(name)
	if status != nil {
		fmt.Fprintf(&s.told, "  %v\n", status)
		return
	}
	fmt.Fprintf(&s.told, "  %s\n", storydoc.TreeText(t))
}

// showUnsatisfiable tells the condition Unsatisfiable, where there is one.
func (s *story) showUnsatisfiable(conditions []api.Condition) {
	for _, c := range conditions {
		if c.Type == "Unsatisfiable" {
			fmt.Fprintf(&s.told, "    Unsatisfiable %s since %s, %s: %s\n", c.Status, c.LastTransitionTime, c.Reason, c.Message)
		}
	}
}
