package api

import (
	"github.com/musterd/muster/api/internal/strict"
)

// KindQuotaMode is the kind of a QuotaMode document.
const KindQuotaMode = "QuotaMode"

// The modes of quota trees (spec/quota-manager.txt).
const (
	// ModeNormal admits, borrows, claims back and evicts.
	ModeNormal = "Normal"
	// ModeMaintenance charges new work to its own group, whatever the quota of the
	// tree.
	ModeMaintenance = "Maintenance"
)

// QuotaMode says whether quota trees limit new work. A cluster has one.
type QuotaMode struct {
	// APIVersion is the version of the document's format.
	APIVersion string `json:"apiVersion,omitempty" default:"muster/v1" oneof:"muster/v1"`
	// Kind is the kind of the document.
	Kind string `json:"kind" default:"QuotaMode" oneof:"QuotaMode"`
	// Metadata has the uid and the resourceVersion. Until the mode is changed for the
	// first time there is no uid, and the resourceVersion is 0.
	Metadata ObjectMeta `json:"metadata"`
	// Mode is Normal, where trees limit new work, or Maintenance, where new work is
	// charged to its own group whatever the quota of the tree.
	Mode string `json:"mode" oneof:"Normal,Maintenance"`
	// Reason is kept for people: at most 256 bytes.
	Reason string `json:"reason,omitempty" example:"moving groups between departments"`
	// By is the caller of the last change.
	By string `json:"by,omitempty" example:"admin"`
	// Since is the time of that change.
	Since string `json:"since,omitempty" example:"2026-03-01T12:00:00Z"`
}

// QuotaModePatch is a merge patch (RFC 7386) of the mode of quota trees.
type QuotaModePatch struct {
	// APIVersion is the version of the document's format.
	APIVersion string `json:"apiVersion,omitempty" oneof:"muster/v1"`
	// Kind is the kind of the document that is patched.
	Kind string `json:"kind,omitempty" oneof:"QuotaMode"`
	// Metadata has the uid and the resourceVersion that the change is for; a mode that
	// has others refuses the change with 409.
	Metadata Preconditions `json:"metadata,omitzero"`
	// Mode is the new mode: Normal or Maintenance.
	Mode string `json:"mode" required:"true" oneof:"Normal,Maintenance" example:"Maintenance"`
	// Reason is kept for people: at most 256 bytes.
	Reason string `json:"reason,omitempty" example:"moving groups between departments"`
}

var quotaModePatchDecoder = strict.For[QuotaModePatch]()

// DecodeQuotaModePatch reads and validates a change of the mode.
func DecodeQuotaModePatch(doc []byte) (QuotaModePatch, *Status) {
	return decodeValue(quotaModePatchDecoder, doc, func(p *QuotaModePatch) *Status {
		return allFaults(checkKind(p.APIVersion, p.Kind, KindQuotaMode), p.Validate())
	})
}

// Validate refuses a mode that does not exist, and a reason that is not one line.
func (p QuotaModePatch) Validate() *Status {
	var faults faults
	switch p.Mode {
	case ModeNormal, ModeMaintenance:
	case "":
		faults.add(invalid("mode", "required: want %s or %s", ModeNormal, ModeMaintenance))
	default:
		faults.add(invalid("mode", "%q: want %s or %s", clip(p.Mode), ModeNormal, ModeMaintenance))
	}
	faults.add(checkLine("reason", p.Reason))
	return faults.status()
}

// Notice is the warning that each answer has while trees limit nothing; "" in the
// mode Normal.
func (m QuotaMode) Notice() string {
	if m.Mode != ModeMaintenance {
		return ""
	}
	text := "quota trees are in the mode Maintenance"
	if m.Since != "" {
		text += " since " + m.Since
	}
	if m.By != "" {
		text += ", set by " + m.By
	}
	if m.Reason != "" {
		text += " (" + m.Reason + ")"
	}
	return text + ": trees limit no new work; muster quota mode Normal ends this"
}
