package narrate

import (
	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// done is the result of each change in the store: refused requests leave no record.
const done = "Done"

// takeAudit takes the entry of a change. The end of its lease says nothing.
func (n *Narrator) takeAudit(c *change, e record.Event) error {
	if e.Type == record.EventDelete {
		return nil
	}
	a, err := decode[record.Audit](e.KV)
	if err != nil {
		return err
	}
	c.note(instant(a.AtMillis))
	n.tellAudit(*a, e.KV.ModRev)
	return nil
}

// tellSubmission makes the row of a submission, which is in the record that it creates.
func (n *Narrator) tellSubmission(kv record.KV, by *record.Actor, kind, namespace, name string) {
	n.tellAudit(record.Submission(by, kind, namespace, name), kv.CreateRev)
}

func (n *Narrator) tellAudit(a record.Audit, at resource.Revision) {
	n.out.audit.put(a.ID, history.Audit{
		ID: a.ID, At: instant(a.AtMillis), Actor: jsonOf(a.Actor, true), User: a.Person, Verb: a.Verb, Kind: a.Kind, Namespace: a.Namespace, Name: a.Name,
		RequestID: a.RequestID, Result: done, Revision: at,
	})
}
