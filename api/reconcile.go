package api

import (
	"net/http"

	"github.com/musterd/muster/api/internal/strict"
)

// The modes of a reconciliation.
const (
	// ReconcileAdopt makes records again of what the node holds and the store has
	// lost.
	ReconcileAdopt = "adopt"
	// ReconcileRelease stops what the node holds and the store has lost.
	ReconcileRelease = "release"
)

// ReconcileOptions is the body of a reconciliation, which ends a node's
// quarantine after the store was restored from a backup.
type ReconcileOptions struct {
	// Mode is ReconcileAdopt or ReconcileRelease; "" only looks.
	Mode string `json:"mode,omitempty"`
	// GracePeriodSeconds is the time to stop in of what is released; nil is 30.
	GracePeriodSeconds *int64 `json:"gracePeriodSeconds,omitempty"`
}

var reconcileOptionsDecoder = strict.For[ReconcileOptions]()

// DecodeReconcileOptions reads the body of a reconciliation; an empty body only
// looks.
func DecodeReconcileOptions(doc []byte) (ReconcileOptions, *Status) {
	if len(doc) == 0 {
		return ReconcileOptions{}, nil
	}
	o, status := decode(reconcileOptionsDecoder, doc)
	if status != nil {
		return ReconcileOptions{}, status
	}
	if o.Mode != "" && o.Mode != ReconcileAdopt && o.Mode != ReconcileRelease {
		return ReconcileOptions{}, invalid("mode", "%q: want adopt, release, or nothing to look only", clip(o.Mode))
	}
	if g := o.GracePeriodSeconds; g != nil && (*g < 0 || *g > 1<<31) {
		return ReconcileOptions{}, Errorf(http.StatusUnprocessableEntity, "gracePeriodSeconds: %d: want 0 to %d", *g, int64(1)<<31)
	}
	return *o, nil
}

// Reconciliation is what a node in quarantine holds beside what the store has,
// and what becomes of it.
type Reconciliation struct {
	Kind       string `json:"kind,omitempty"`
	Node       string `json:"node"`
	Mode       string `json:"mode,omitempty"` // "": nothing was changed
	Quarantine string `json:"quarantine"`     // why
	// Grants are those of the node's agent, by transaction.
	Grants []ReconciledGrant `json:"grants"`
	// Records are those of the store that name the node, and whose members its
	// agent does not hold.
	Records []ReconciledRecord `json:"records"`
}

// ReconciledGrant is one transaction that the agent has members of.
type ReconciledGrant struct {
	Transaction string   `json:"transaction"`
	Unit        string   `json:"unit,omitempty"` // namespace/alloc|job/name/n; "" where it is not known
	Tenant      string   `json:"tenant,omitempty"`
	Members     []int    `json:"members"`
	Devices     []string `json:"devices,omitempty"` // UUIDs
	State       string   `json:"state"`             // at the agent
	Record      string   `json:"record"`            // its state in the store, or "absent"
	// Adopt and Release say what becomes of it in either mode.
	Adopt   string `json:"adopt"`
	Release string `json:"release"`
}

// ReconciledRecord is one transaction that the agent does not hold. It is ended
// in either mode.
type ReconciledRecord struct {
	Transaction string `json:"transaction"`
	Unit        string `json:"unit"`
	Record      string `json:"record"`
	Outcome     string `json:"outcome"`
}
