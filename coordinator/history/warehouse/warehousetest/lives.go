package warehousetest

import (
	"fmt"
	"time"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/resource"
)

// Lives makes the rows of allocations that are created, committed and released, with
// CPU, memory and a GPU each, a wait in the queue and a slice of each slot. Batch n
// creates some, commits those of batch n-1 and releases those of batch n-2, as in a
// cluster at work. The zero value begins at revision 0.
type Lives struct {
	// Tenants, Nodes and Projects are how many there are; 0 is 50, 200 and 4 a tenant.
	Tenants, Nodes, Projects int
	position                 resource.Revision
	next                     int
	pending, running         []int
}

// firstLife is the instant of the first creation.
var firstLife = time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)

func (l *Lives) at() time.Time {
	return firstLife.Add(time.Duration(l.position) * time.Millisecond).Truncate(time.Millisecond)
}

// Batch is the next batch: n allocations are created.
func (l *Lives) Batch(n int) history.Batch {
	b := history.Batch{After: l.position}
	for _, id := range l.running {
		l.position++
		b.Units = append(b.Units, l.unit(id, "Succeeded"))
		b.Grants = append(b.Grants, l.grant(id, "RELEASED"))
		b.Slices = append(b.Slices, l.slices(id)...)
	}
	for _, id := range l.pending {
		l.position++
		b.Units = append(b.Units, l.unit(id, "Running"))
		b.Grants = append(b.Grants, l.grant(id, "COMMITTED"))
		b.Waits = append(b.Waits, l.wait(id, true))
	}
	l.running, l.pending = l.pending, nil
	for range n {
		l.position++
		b.Units = append(b.Units, l.unit(l.next, "Pending"))
		b.Waits = append(b.Waits, l.wait(l.next, false))
		l.pending = append(l.pending, l.next)
		l.next++
	}
	b.Upto, b.At = l.position, l.at()
	return b
}

// Ended is a batch of n allocations in their last state, as a rebuild reads them.
func (l *Lives) Ended(n int) history.Batch {
	b := history.Batch{After: l.position}
	for range n {
		l.position++
		b.Units = append(b.Units, l.unit(l.next, "Succeeded"))
		b.Grants = append(b.Grants, l.grant(l.next, "RELEASED"))
		b.Waits = append(b.Waits, l.wait(l.next, true))
		b.Slices = append(b.Slices, l.slices(l.next)...)
		l.next++
	}
	b.Upto, b.At = l.position, l.at()
	return b
}

func (l *Lives) tenant(id int) resource.TenantID {
	return resource.TenantID(fmt.Sprintf("tenant-%02d", id%or(l.Tenants, 50)))
}

func (l *Lives) namespace(id int) string {
	return fmt.Sprintf("%s-project-%d", l.tenant(id), id/or(l.Tenants, 50)%or(l.Projects, 4))
}

func (l *Lives) node(id int) resource.NodeID {
	return resource.NodeID(fmt.Sprintf("node-%04d.cluster.example.com", id%or(l.Nodes, 200)))
}

func or(n, otherwise int) int {
	if n > 0 {
		return n
	}
	return otherwise
}

// uid has the length of the real ids.
func uid(kind string, id int) string {
	return fmt.Sprintf("%s-%08x-4e2b-9c11-%012x", kind, id*2654435761%(1<<32), id)
}

func requests() resource.Vector {
	return resource.Vector{resource.CPU: 4000, resource.Memory: 32 << 30, resource.GPU: 1000}
}

// created is the instant at which an allocation was created: a second apart each thousand.
func created(id int) time.Time { return firstLife.Add(time.Duration(id) * time.Millisecond) }

func committed(id int) time.Time { return created(id).Add(time.Duration(1+id%40) * time.Second) }

func ended(id int) time.Time { return committed(id).Add(time.Duration(30+id%1500) * time.Second) }

func (l *Lives) unit(id int, state string) history.Unit {
	u := history.Unit{UID: resource.UnitUID(uid("u", id)), Namespace: l.namespace(id), Name: fmt.Sprintf("train-%d", id), Tenant: l.tenant(id), User: "ada@example.com",
		Queue: "default", Priority: int32(id % 5 * 100), PriorityClass: "normal", PreemptionPolicy: "PreemptLowerPriority", QOSClass: "Guaranteed", Members: 1,
		Requests: requests(), Limits: requests(), NodeSelector: []byte(`{"muster.io/gpu-model":"H100"}`), State: state, Created: created(id), TTL: time.Hour,
		Revision: l.position}
	if state != "Pending" {
		u.Scheduled, u.Started, u.Expires = committed(id), committed(id), committed(id).Add(time.Hour)
	}
	if state == "Succeeded" {
		u.Ended, u.Reason = ended(id), "Released"
	}
	return u
}

func (l *Lives) grant(id int, state string) history.Grant {
	g := history.Grant{Tx: resource.TxID(uid("t", id)), Unit: resource.UnitUID(uid("u", id)), Namespace: l.namespace(id), Tenant: l.tenant(id), State: state,
		Committed: committed(id), Ready: committed(id), Revision: l.position,
		Members: []history.Member{{Node: l.node(id), Devices: []string{uid("GPU", id)}, GPUModel: "H100", Requested: requests(), Allocated: requests(), Limits: requests()}}}
	if state == "RELEASED" {
		g.Ending, g.Ended, g.Reason = ended(id), ended(id), "Released"
	}
	return g
}

func (l *Lives) wait(id int, over bool) history.Wait {
	w := history.Wait{Unit: resource.UnitUID(uid("u", id)), Namespace: l.namespace(id), Tenant: l.tenant(id), Queue: "default", Priority: int32(id % 5 * 100),
		Since: created(id), Code: "InsufficientGPU", Message: "want 1 GPU, 0 free on 200 nodes", Attempts: 1, Revision: l.position}
	if over {
		w.Until = committed(id)
	}
	return w
}

// slices are those of one hour at most for each slot: the life is cut at full hours.
func (l *Lives) slices(id int) (list []history.Slice) {
	for from := committed(id); from.Before(ended(id)); {
		to := from.Truncate(time.Hour).Add(time.Hour)
		if to.After(ended(id)) {
			to = ended(id)
		}
		for _, slot := range requests().Names() {
			amount := requests()[slot]
			measured := amount * to.Sub(from).Milliseconds() / 2
			list = append(list, history.Slice{Tx: resource.TxID(uid("t", id)), Unit: resource.UnitUID(uid("u", id)), Namespace: l.namespace(id), Tenant: l.tenant(id),
				Node: l.node(id), Slot: slot, GPUModel: "H100", From: from, To: to, Requested: amount, Allocated: amount, Limit: amount, Measured: &measured})
		}
		from = to
	}
	return list
}
