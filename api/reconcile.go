package api

import (
	"github.com/musterd/muster/api/internal/strict"
)

// The modes of a reconciliation.
const (
	// ReconcileAdopt makes records again of the grants that the node holds and the store has
	// lost.
	ReconcileAdopt = "adopt"
	// ReconcileRelease stops the grants that the node holds and the store has lost.
	ReconcileRelease = "release"
)

// ReconcileOptions is the optional body of a reconciliation, which ends a node's
// quarantine after the store was restored from a backup.
type ReconcileOptions struct {
	// Mode is the operator's choice: adopt makes records again of grants that the
	// store has lost, release stops them. Left out, the answer shows the effect of
	// both and nothing changes.
	Mode string `json:"mode,omitempty" oneof:"adopt,release"`
	// GracePeriodSeconds is the time that released units get to stop.
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty" default:"30" range:"0..2147483648" unit:"seconds" example:"60"`
}

var reconcileOptionsDecoder = strict.For[ReconcileOptions]()

// DecodeReconcileOptions reads the body of a reconciliation; an empty body only
// looks.
func DecodeReconcileOptions(doc []byte) (ReconcileOptions, *Status) {
	return decodeOptions(reconcileOptionsDecoder, doc, func(o *ReconcileOptions) *Status {
		var faults faults
		if o.Mode != "" && o.Mode != ReconcileAdopt && o.Mode != ReconcileRelease {
			faults.add(invalid("mode", "%q: want adopt, release, or nothing to look only", clip(o.Mode)))
		}
		if g := o.GracePeriodSeconds; g != nil && (*g < 0 || *g > 1<<31) {
			faults.add(invalid("gracePeriodSeconds", "%d: want 0 to %d", *g, int64(1)<<31))
		}
		return faults.status()
	})
}

// Reconciliation compares the grants of a node in quarantine with the records of
// the store.
type Reconciliation struct {
	// Kind is Reconciliation.
	Kind string `json:"kind,omitempty" oneof:"Reconciliation"`
	// Node is the node's name.
	Node string `json:"node" example:"gpu-17"`
	// Mode is adopt or release; empty where nothing was changed.
	Mode string `json:"mode,omitempty" oneof:"adopt,release"`
	// Quarantine is the reason of the quarantine.
	Quarantine string `json:"quarantine" example:"the store is older than a revision that this agent has seen"`
	// Grants are the grants of the node's agent, by transaction.
	Grants []ReconciledGrant `json:"grants"`
	// Records are the records of the store that name the node and whose members the
	// agent does not hold.
	Records []ReconciledRecord `json:"records"`
}

// ReconciledGrant is one transaction of which the agent holds members.
type ReconciledGrant struct {
	// Transaction is the transaction's id.
	Transaction string `json:"transaction" example:"alloc-00000000000000a1-1.1"`
	// Unit is the unit's path, NAMESPACE/alloc/NAME/N or NAMESPACE/job/NAME/N; empty
	// where the agent does not know it.
	Unit string `json:"unit,omitempty" example:"default/job/train/0"`
	// Tenant is the owner of the unit.
	Tenant string `json:"tenant,omitempty" example:"vision"`
	// Members are the numbers of the members on this node.
	Members []int `json:"members" example:"[0, 1]"`
	// Devices are the UUIDs of the devices.
	Devices []string `json:"devices,omitempty" example:"[GPU-6e8a5f2c-0000-4000-8000-000000000000]"`
	// State is the state of the grant at the agent.
	State string `json:"state" example:"HELD"`
	// Record is the state of the record in the store, or absent.
	Record string `json:"record" example:"absent"`
	// Adopt is the effect of the mode adopt on the grant.
	Adopt string `json:"adopt" example:"a record is made"`
	// Release is the effect of the mode release on the grant.
	Release string `json:"release" example:"stopped"`
}

// ReconciledRecord is one transaction that the agent does not hold. Both modes end
// it.
type ReconciledRecord struct {
	// Transaction is the transaction's id.
	Transaction string `json:"transaction" example:"alloc-00000000000000a1-1.1"`
	// Unit is the unit's path.
	Unit string `json:"unit" example:"default/job/train/0"`
	// Record is the state of the record in the store.
	Record string `json:"record" example:"COMMITTED"`
	// Outcome is the effect on the unit.
	Outcome string `json:"outcome" example:"ends as NodeLost"`
}
