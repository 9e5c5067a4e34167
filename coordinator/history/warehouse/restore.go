package warehouse

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/musterd/muster/coordinator/history"
	"github.com/musterd/muster/resource"
)

// Each method makes one value of the rows that convert.go makes of it.

func (r *reader) nodes(c condition) (list []history.Node) {
	capacity := r.children(nodeCapacity, c)
	for _, row := range r.scan(nodes, c) {
		n := history.Node{ID: resource.NodeID(row.text("node_id")), Hostname: row.text("hostname"), Cluster: row.text("cluster_id"), Region: row.text("region"),
			Zone: row.text("zone"), Rack: row.text("rack_id"), GPUModel: row.text("gpu_type"), Labels: r.object(row, "labels"), Taints: row.document("taints"),
			Annotations: r.object(row, "annotations"), Conditions: row.document("conditions"), Phase: row.text("status"), Cordoned: row.boolean("unschedulable"),
			Registered: row.instant("registered_at"), Deleted: row.instant("deleted_at"), Revision: row.revision()}
		for _, slot := range capacity[string(n.ID)] {
			r.put(&n.Capacity, slot, "slot_name", "capacity", false)
			r.put(&n.Allocatable, slot, "slot_name", "allocatable", false)
		}
		list = append(list, n)
	}
	return list
}

func (r *reader) object(row stored, column string) (m map[string]string) {
	if raw := row.document(column); raw != nil {
		r.err = errors.Join(r.err, json.Unmarshal(raw, &m))
	}
	return m
}

func (r *reader) job(row stored) history.Job {
	return history.Job{UID: row.text("job_id"), Namespace: row.text("namespace"), Name: row.text("job_name"), Tenant: resource.TenantID(row.text("tenant_id")),
		User: row.text("user_name"), Phase: row.text("state"), Document: row.document("document"), Created: row.instant("created_at"),
		Ended: row.instant("completed_at"), Reason: row.text("reason"), Message: row.text("message"), Revision: row.revision()}
}

func (r *reader) units(c condition) (list []history.Unit) {
	requests := r.children(allocationRequests, c)
	for _, row := range r.scan(allocations, c) {
		u := history.Unit{UID: resource.UnitUID(row.text("allocation_id")), Namespace: row.text("namespace"), Name: row.text("allocation_name"),
			N: int(row.integer("unit_number")), JobUID: row.text("job_id"), JobName: row.text("job_name"), Tenant: resource.TenantID(row.text("tenant_id")),
			User: row.text("user_name"), Queue: row.text("queue"), Priority: int32(row.integer("priority")), PriorityClass: row.text("priority_class"),
			PreemptionPolicy: row.text("preemption_policy"), QOSClass: row.text("qos_class"), GroupID: row.text("group_id"), Members: int(row.integer("members")),
			NodeSelector: row.document("node_selector"), Affinity: row.document("affinity_rules"), Tolerations: row.document("tolerations"),
			Topology: row.document("topology_constraints"), State: row.text("state"), Reason: row.text("reason"), Message: row.text("message"),
			Created: row.instant("created_at"), Scheduled: row.instant("scheduled_at"), Started: row.instant("started_at"), Ended: row.instant("completed_at"),
			TTL: time.Duration(row.integer("ttl_ms")) * time.Millisecond, TimeLimited: row.boolean("time_limited"), Expires: row.instant("expires_at"), Retries: int(row.integer("retries")), Revision: row.revision()}
		for _, slot := range requests[string(u.UID)] {
			r.put(&u.Requests, slot, "slot_name", "requested", false)
			r.put(&u.Limits, slot, "slot_name", "limit_amount", true)
		}
		list = append(list, u)
	}
	return list
}

func (r *reader) grants(c condition) (list []history.Grant) {
	members, resources := r.children(grantMembers, c), r.children(grantResources, c)
	for _, row := range r.scan(grants, c) {
		g := history.Grant{Tx: resource.TxID(row.text("tx_id")), Unit: resource.UnitUID(row.text("allocation_id")), Namespace: row.text("namespace"),
			Tenant: resource.TenantID(row.text("tenant_id")), State: row.text("state"), Committed: row.instant("committed_at"), Ready: row.instant("ready_at"), Signaled: row.instant("signaled_at"),
			Ending: row.instant("ending_at"), Ended: row.instant("ended_at"), Evicted: row.boolean("evicted"), By: resource.TxID(row.text("preempted_by")),
			Reason: row.text("reason"), Exits: row.document("exits"), Revision: row.revision()}
		place := map[int64]int{}
		for _, m := range members[string(g.Tx)] {
			place[m.integer("member")] = len(g.Members)
			member := history.Member{Index: int(m.integer("member")), Node: resource.NodeID(m.text("node_id")), GPUModel: m.text("gpu_model"), Ended: m.instant("ended_at")}
			if raw := m.document("devices"); raw != nil {
				r.err = errors.Join(r.err, json.Unmarshal(raw, &member.Devices))
			}
			g.Members = append(g.Members, member)
		}
		for _, slot := range resources[string(g.Tx)] {
			if i, known := place[slot.integer("member")]; known {
				r.put(&g.Members[i].Requested, slot, "slot_name", "requested", false)
				r.put(&g.Members[i].Allocated, slot, "slot_name", "used", true)
				r.put(&g.Members[i].Limits, slot, "slot_name", "limit_amount", true)
			}
		}
		list = append(list, g)
	}
	return list
}

func (r *reader) wait(row stored) history.Wait {
	return history.Wait{Unit: resource.UnitUID(row.text("allocation_id")), Namespace: row.text("namespace"), Tenant: resource.TenantID(row.text("tenant_id")),
		Queue: row.text("queue"), Priority: int32(row.integer("priority")), Since: row.instant("since_at"), Until: row.instant("until_at"), Code: row.text("reason"),
		Message: row.text("message"), Attempts: int(row.integer("attempts")), NextTry: row.instant("next_retry_at"), Revision: row.revision()}
}

func (r *reader) quota(row stored) history.Quota {
	q := history.Quota{Namespace: row.text("namespace"), Name: row.text("quota_name"), Tenant: resource.TenantID(row.text("tenant_id")),
		Slot: resource.Name(row.text("resource_type")), From: row.instant("from_at"), To: row.instant("to_at"), Scoped: row.boolean("scoped"), Revision: row.revision()}
	q.Hard, q.Soft = r.limit(row, "hard_limit", q.Slot), r.limit(row, "soft_limit", q.Slot)
	return q
}

// limit is resource.Unlimited where the column is NULL.
func (r *reader) limit(row stored, column string, slot resource.Name) int64 {
	base, known, err := r.w.amount(row, column, slot.Scale())
	r.err = errors.Join(r.err, err)
	if !known {
		return resource.Unlimited
	}
	return base
}

func (r *reader) preemptions(c condition) (list []history.Preemption) {
	onNodes, freed := r.children(preemptionNodes, c), r.children(preemptionFreed, c)
	for _, row := range r.scan(preemptions, c) {
		p := history.Preemption{Tx: resource.TxID(row.text("preemption_id")), Victim: resource.UnitUID(row.text("preempted_job_id")),
			VictimTenant: resource.TenantID(row.text("preempted_tenant")), VictimPriority: int32(row.integer("preempted_priority")),
			By: resource.TxID(row.text("preempting_tx_id")), Preemptor: resource.UnitUID(row.text("preempting_job_id")),
			PreemptorTenant: resource.TenantID(row.text("preempting_tenant")), PreemptorPriority: int32(row.integer("preempting_priority")),
			Reason: row.text("reason"), Grace: time.Duration(row.integer("grace_period_ms")) * time.Millisecond, Initiated: row.instant("initiated_at"),
			Evicted: row.instant("evicted_at"), Rescheduled: row.instant("rescheduled_at"), Outcome: row.text("outcome"), InitiatedBy: row.text("initiated_by"),
			Revision: row.revision()}
		for _, n := range onNodes[string(p.Tx)] {
			p.Nodes = append(p.Nodes, resource.NodeID(n.text("node_id")))
		}
		for _, f := range freed[string(p.Tx)] {
			r.put(&p.Freed, f, "slot_name", "freed", true)
		}
		list = append(list, p)
	}
	return list
}

func (r *reader) condition(row stored) history.Condition {
	return history.Condition{Node: resource.NodeID(row.text("node_id")), Type: row.text("condition_type"), Old: row.text("old_status"), New: row.text("new_status"),
		Reason: row.text("reason"), Message: row.text("message"), At: row.instant("changed_at"), Revision: row.revision()}
}

func (r *reader) audit(row stored) history.Audit {
	return history.Audit{ID: row.text("audit_id"), At: row.instant("at"), Actor: row.document("actor"), User: row.text("user_name"), Verb: row.text("verb"),
		Kind: row.text("kind"), Namespace: row.text("namespace"), Name: row.text("object_name"), RequestID: row.text("request_id"), Result: row.text("result"),
		Revision: row.revision()}
}

func (r *reader) gap(row stored) history.Gap {
	return history.Gap{From: resource.Revision(row.integer("from_revision")), Upto: resource.Revision(row.integer("upto_revision")), At: row.instant("at"), Reason: row.text("reason")}
}

func (r *reader) slice(row stored) history.Slice {
	s := history.Slice{Tx: resource.TxID(row.text("tx_id")), Member: int(row.integer("member")), Unit: resource.UnitUID(row.text("allocation_id")),
		Namespace: row.text("namespace"), Tenant: resource.TenantID(row.text("tenant_id")), Node: resource.NodeID(row.text("node_id")),
		Slot: resource.Name(row.text("slot_name")), GPUModel: row.text("gpu_model"), From: row.instant("from_at"), To: row.instant("to_at")}
	var known bool
	var errs [4]error
	s.Requested, _, errs[0] = r.w.amount(row, "requested", s.Slot.Scale())
	s.Allocated, _, errs[1] = r.w.amount(row, "allocated", s.Slot.Scale())
	s.Limit, _, errs[2] = r.w.amount(row, "limit_amount", s.Slot.Scale())
	var measured int64
	if measured, known, errs[3] = r.w.amount(row, "measured", s.Slot.Scale()*1000); known {
		s.Measured = &measured
	}
	s.Counter = row.count("counter")
	r.err = errors.Join(r.err, errors.Join(errs[:]...))
	return s
}
