package storydoc

import (
	"fmt"
	"strings"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/post"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/grant"
	"github.com/musterd/muster/resource"
)

// Command words a command to an agent; name is the short name of a transaction.
func Command(c grant.Command, name func(resource.TxID) string) string {
	switch c := c.(type) {
	case grant.Reserve:
		text := "reserve " + name(c.Tx)
		for i, m := range c.Members {
			text += fmt.Sprintf("%s member %d wants %d GPUs", [...]string{":", ","}[min(i, 1)], m.Index, m.Request.GPUs)
		}
		for _, tx := range c.After {
			text += ", after " + name(tx)
		}
		return text
	case grant.Commit:
		return "commit " + name(c.Tx)
	case grant.Abort:
		return "abort " + name(c.Tx)
	case grant.Release:
		return fmt.Sprintf("release %s, with a grace of %v", name(c.Tx), c.Grace)
	case grant.Evict:
		return fmt.Sprintf("evict %s, with a grace of %v", name(c.Tx), c.Grace)
	case grant.Forget:
		return "forget " + name(c.Tx)
	case grant.Resync:
		return "tell all that you hold"
	}
	return fmt.Sprintf("%T", c)
}

// Write words the operations of a write, and its conditions on a line of their own; key is the
// short name of a key. It panics where a record cannot be read.
func Write(w post.Write, key func(string) string) string {
	var parts, conditions []string
	for _, op := range w.Ops {
		name := key(op.Key)
		switch {
		case op.Delete:
			name = "delete " + name
		case strings.HasPrefix(op.Key, record.TxPrefix):
			rec, err := record.Decode[record.Tx](op.Key, op.Value)
			if err != nil {
				panic(err)
			}
			name += " " + rec.State.String()
		case strings.HasPrefix(op.Key, record.UnitsPrefix):
			rec, err := record.Decode[record.Unit](op.Key, op.Value)
			if err != nil {
				panic(err)
			}
			name += " " + rec.Phase
			if string(rec.Tenant) != rec.Namespace {
				name += " of tenant " + string(rec.Tenant)
			}
			if rec.Queue != api.DefaultQueue {
				name += " in queue " + rec.Queue
			}
		}
		parts = append(parts, name)
	}
	for _, c := range w.Compares {
		is := "unchanged"
		if c.Rev == 0 {
			is = "absent"
		}
		conditions = append(conditions, key(c.Key)+" is "+is)
	}
	text := strings.Join(parts, ", ")
	if len(conditions) > 0 {
		text += "\n      if " + strings.Join(conditions, ", ")
	}
	return text
}
