package allocator

import (
	"fmt"
	"math"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// The parts of an allocation that are the same here as in package api.
type (
	// AllocationStatus is the state of an allocation.
	AllocationStatus = api.AllocationStatus
	// Affinity holds affinity to nodes.
	Affinity = api.Affinity
	// Toleration lets the allocation onto nodes with a matching taint.
	Toleration = api.Toleration
	// TopologySpreadConstraint would bound how unevenly members fill domains.
	TopologySpreadConstraint = api.TopologySpreadConstraint
	// GangScheduling makes members start together or not at all.
	GangScheduling = api.GangScheduling
	// GPUConstraint restricts the devices.
	GPUConstraint = api.GPUConstraint
	// EnvVar is one variable of an environment.
	EnvVar = api.EnvVar
	// Mount is a folder or a file of a node that a command sees in its root file system.
	Mount = api.Mount
	// Preconditions are values that an allocation must have for a change to be made.
	Preconditions = api.Preconditions
	// QuotaDemand names the quota groups that the allocation is charged to.
	QuotaDemand = api.QuotaDemand
)

// Allocation is the devices, CPUs and memory of one member on one node.
type Allocation struct {
	Name        string
	Namespace   string // "" is that of the request
	Labels      map[string]string
	Annotations map[string]string

	// Set by the server. A create ignores these, apart from ResourceVersion.
	UID                        string
	ResourceVersion            string
	CreationTimestamp          string
	DeletionTimestamp          string // "" until somebody has asked for the end
	DeletionGracePeriodSeconds *int64

	Spec   AllocationSpec
	Status AllocationStatus
}

// Alternative is another request that would do: its fields replace those of the
// specification.
type Alternative struct {
	Resources    *ResourceRequirements // nil for those of the specification
	GPU          *GPUConstraint        // nil for that of the specification
	NodeSelector map[string]string     // empty for that of the specification
}

// AllocationSpec is a tenant's request.
type AllocationSpec struct {
	Resources ResourceRequirements
	// Alternatives are other requests that would do, in order; Resources come first.
	Alternatives []Alternative
	// Priority is 1..1000000000, or 0 for the number of PriorityClass.
	Priority         int
	PriorityClass    string
	PreemptionPolicy string

	NodeSelector              map[string]string
	Affinity                  *Affinity
	Tolerations               []Toleration
	TopologySpreadConstraints []TopologySpreadConstraint
	GangScheduling            *GangScheduling
	GPU                       *GPUConstraint
	NUMAPolicy                string

	TTL     string
	Queue   string
	Suspend *bool
	// Command, Args, Env, WorkingDir, Rootfs, Bundle, Mounts, Stdin and TTY are those of a job's
	// members. The server refuses them in an allocation.
	Command, Args  []string
	Env            []EnvVar
	WorkingDir     string
	Rootfs, Bundle string
	Mounts         []Mount
	Stdin, TTY     bool
	// Signal is sent SignalBefore, e.g. 60s, before a known end of a job's members.
	Signal, SignalBefore string
	Quota                *QuotaDemand
}

// ResourceRequirements are amounts by resource.
type ResourceRequirements struct {
	Requests, Limits ResourceList
}

// ResourceList is an amount for each resource: {"cpu": "8", "memory": "32Gi"}.
type ResourceList map[string]string

// AllocationList is a list of allocations, ordered by namespace and name.
type AllocationList struct {
	ResourceVersion string
	Continue        string // "" where Items are all
	Items           []Allocation
}

// documentOf makes the document that is sent.
func documentOf(a *Allocation) (*api.Allocation, error) {
	s := &a.Spec
	doc := &api.Allocation{
		Metadata: api.ObjectMeta{
			Name: a.Name, Namespace: a.Namespace, Labels: a.Labels, Annotations: a.Annotations,
			UID: a.UID, ResourceVersion: a.ResourceVersion, CreationTimestamp: a.CreationTimestamp,
			DeletionTimestamp: a.DeletionTimestamp, DeletionGracePeriodSeconds: a.DeletionGracePeriodSeconds,
		},
		Spec: api.AllocationSpec{
			Resources:     api.Requirements{Requests: amountsOf(s.Resources.Requests), Limits: amountsOf(s.Resources.Limits)},
			PriorityClass: s.PriorityClass, PreemptionPolicy: s.PreemptionPolicy,
			Scheduling: api.Scheduling{
				NodeSelector: s.NodeSelector, Affinity: s.Affinity, Tolerations: s.Tolerations,
				TopologySpreadConstraints: s.TopologySpreadConstraints, GangScheduling: s.GangScheduling, GPU: s.GPU, NUMAPolicy: s.NUMAPolicy,
			},
			TTL: s.TTL, Queue: s.Queue, Suspend: s.Suspend, Quota: s.Quota,
			Command: s.Command, Args: s.Args, Env: s.Env, WorkingDir: s.WorkingDir, Rootfs: s.Rootfs, Bundle: s.Bundle, Mounts: s.Mounts, Stdin: s.Stdin, TTY: s.TTY, Signal: s.Signal, SignalBefore: s.SignalBefore,
		},
		Status: a.Status,
	}
	for _, o := range s.Alternatives {
		alternative := api.Alternative{GPU: o.GPU, NodeSelector: o.NodeSelector}
		if o.Resources != nil {
			alternative.Resources = &api.Requirements{Requests: amountsOf(o.Resources.Requests), Limits: amountsOf(o.Resources.Limits)}
		}
		doc.Spec.Alternatives = append(doc.Spec.Alternatives, alternative)
	}
	if s.Priority < 0 || s.Priority > math.MaxInt32 {
		return nil, fmt.Errorf("allocation %s: Spec.Priority: %d is outside 0..%d", a.Name, s.Priority, api.MaxPriority)
	}
	if s.Priority != 0 {
		priority := int32(s.Priority)
		doc.Spec.Priority = &priority
	}
	return doc, nil
}

// allocationOf reads a document. A gang is in Spec.GangScheduling, in whichever
// of its two places the document has the gang.
func allocationOf(doc *api.Allocation) *Allocation {
	m, s := &doc.Metadata, &doc.Spec
	a := &Allocation{
		Name: m.Name, Namespace: m.Namespace, Labels: m.Labels, Annotations: m.Annotations,
		UID: m.UID, ResourceVersion: m.ResourceVersion, CreationTimestamp: m.CreationTimestamp,
		DeletionTimestamp: m.DeletionTimestamp, DeletionGracePeriodSeconds: m.DeletionGracePeriodSeconds,
		Spec: AllocationSpec{
			Resources:     ResourceRequirements{Requests: listOf(s.Resources.Requests), Limits: listOf(s.Resources.Limits)},
			PriorityClass: s.PriorityClass, PreemptionPolicy: s.PreemptionPolicy,
			NodeSelector: s.Scheduling.NodeSelector, Affinity: s.Scheduling.Affinity, Tolerations: s.Scheduling.Tolerations,
			TopologySpreadConstraints: s.Scheduling.TopologySpreadConstraints, GangScheduling: s.Gang(), GPU: s.Scheduling.GPU,
			NUMAPolicy: s.Scheduling.NUMAPolicy, TTL: s.TTL, Queue: s.Queue, Suspend: s.Suspend, Quota: s.Quota,
			Command: s.Command, Args: s.Args, Env: s.Env, WorkingDir: s.WorkingDir, Rootfs: s.Rootfs, Bundle: s.Bundle, Mounts: s.Mounts, Stdin: s.Stdin, TTY: s.TTY, Signal: s.Signal, SignalBefore: s.SignalBefore,
		},
		Status: doc.Status,
	}
	for _, o := range s.Alternatives {
		alternative := Alternative{GPU: o.GPU, NodeSelector: o.NodeSelector}
		if o.Resources != nil {
			alternative.Resources = &ResourceRequirements{Requests: listOf(o.Resources.Requests), Limits: listOf(o.Resources.Limits)}
		}
		a.Spec.Alternatives = append(a.Spec.Alternatives, alternative)
	}
	if s.Priority != nil {
		a.Spec.Priority = int(*s.Priority)
	}
	return a
}

func amountsOf(l ResourceList) map[resource.Name]string {
	if l == nil {
		return nil
	}
	amounts := make(map[resource.Name]string, len(l))
	for name, amount := range l {
		amounts[resource.Name(name)] = amount
	}
	return amounts
}

func listOf(amounts map[resource.Name]string) ResourceList {
	if amounts == nil {
		return nil
	}
	l := make(ResourceList, len(amounts))
	for name, amount := range amounts {
		l[string(name)] = amount
	}
	return l
}
