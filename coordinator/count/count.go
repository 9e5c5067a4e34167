// Package count has the count quotas of namespaces: how many allocations, jobs and
// waiting units a namespace has stored, the bytes of their annotations and
// documents, and the refusal of work beyond the limits. Amounts of resources are
// package quota's.
package count

import (
	"cmp"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
)

// Use is the number and the size of objects.
type Use struct {
	Allocations, Jobs, Waiting int64
	Annotations, Documents     int64 // bytes
}

// Plus is the sum of two uses.
func (u Use) Plus(o Use) Use {
	return Use{u.Allocations + o.Allocations, u.Jobs + o.Jobs, u.Waiting + o.Waiting, u.Annotations + o.Annotations, u.Documents + o.Documents}
}

// Minus is the difference of two uses.
func (u Use) Minus(o Use) Use {
	return Use{u.Allocations - o.Allocations, u.Jobs - o.Jobs, u.Waiting - o.Waiting, u.Annotations - o.Annotations, u.Documents - o.Documents}
}

// Shown is the use as readers are shown it.
func (u Use) Shown() api.NamespaceCounts {
	return api.NamespaceCounts{
		Allocations: &u.Allocations, Jobs: &u.Jobs, WaitingUnits: &u.Waiting, AnnotationBytes: &u.Annotations, DocumentBytes: &u.Documents,
	}
}

// OfUnit is the use of a unit without its job. doc is the document of a unit that is
// an allocation, and nil of a member of a job.
func OfUnit(unit *record.Unit, doc *api.Allocation) Use {
	u := Use{Allocations: int64(unit.Held()), Documents: int64(len(unit.Document))}
	if api.Phase(unit.Phase) == api.Pending {
		u.Waiting = 1
	}
	if doc != nil {
		u.Annotations = bytesOf(doc.Metadata.Annotations)
	}
	return u
}

// OfJob is the use of a job without its units. It counts with the job's first unit,
// which lives as long as the job.
func OfJob(job *record.Job, doc *api.Job) Use {
	return Use{
		Jobs: 1, Documents: int64(len(job.Document)),
		Annotations: bytesOf(doc.Metadata.Annotations) + bytesOf(doc.Spec.Template.Metadata.Annotations),
	}
}

func bytesOf(annotations map[string]string) int64 {
	sum := 0
	for k, v := range annotations {
		sum += len(k) + len(v)
	}
	return int64(sum)
}

// MaxDocuments bounds the documents of a namespace together, in bytes, where its
// object has no limit of its own.
const MaxDocuments = 64 << 20

// Limits are those of a namespace; nil is no limit. Without a limit of its own a
// namespace has that of the configuration for allocations, and MaxDocuments.
type Limits struct {
	own        *api.NamespaceCounts
	configured int64
}

// LimitsOf are the limits of a namespace: those of its object, nil for none, and the
// greatest number of allocations in the configuration.
func LimitsOf(own *api.NamespaceCounts, configured int) Limits {
	if own == nil {
		own = &api.NamespaceCounts{}
	}
	return Limits{own, int64(configured)}
}

// Shown are the limits in force as readers are shown them.
func (l Limits) Shown() api.NamespaceCounts {
	hard, documents := *l.own, int64(MaxDocuments)
	hard.Allocations, hard.DocumentBytes = cmp.Or(hard.Allocations, &l.configured), cmp.Or(hard.DocumentBytes, &documents)
	return hard
}

// Refuse returns the 429 of a request that adds more to a namespace than its limits
// leave, nil for all other requests. A request that adds nothing to a number is not
// held to its limit.
func (l Limits) Refuse(namespace string, used, more Use) *api.Status {
	hard := l.Shown()
	raise := "an operator to raise limits.allocationsPerNamespace"
	if l.own.Allocations != nil {
		raise = "an admin to raise spec.limits.allocations of the namespace"
	}
	for _, of := range []struct {
		used, more int64
		hard       *int64
		has, raise string
	}{
		{used.Allocations, more.Allocations, hard.Allocations, "%d allocations", raise},
		{used.Jobs, more.Jobs, hard.Jobs, "%d jobs", "an admin to raise spec.limits.jobs of the namespace"},
		{used.Waiting, more.Waiting, hard.WaitingUnits, "%d units that wait", "an admin to raise spec.limits.waitingUnits of the namespace"},
		{used.Annotations, more.Annotations, hard.AnnotationBytes, "annotations of %d bytes", "an admin to raise spec.limits.annotationBytes of the namespace"},
		{used.Documents, more.Documents, hard.DocumentBytes, "documents of %d bytes", "an admin to raise spec.limits.documentBytes of the namespace"},
	} {
		if of.hard != nil && of.more > 0 && of.used+of.more > *of.hard {
			return api.Errorf(429, "namespace %s has "+of.has+" and may have %d: there is no room for %d more; delete objects that have ended, or ask %s",
				namespace, of.used, *of.hard, of.more, of.raise).Because(api.TooManyObjects)
		}
	}
	return nil
}
