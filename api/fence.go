package api

import "github.com/musterd/muster/api/internal/strict"

// FenceOptions is the body of a fence. From then on no transaction counts on
// what the node's agent has promised, until it registers again; what runs there
// stays.
type FenceOptions struct {
	// ConfirmDead is the word of an operator that the machine is off, or that
	// nothing of Muster's runs on it any more: every unit with a member there ends
	// as NodeLost, whole.
	ConfirmDead bool `json:"confirmDead,omitempty"`
	// Force fences a node whose agent is still heard.
	Force  bool   `json:"force,omitempty"`
	Reason string `json:"reason,omitempty"`
}

var fenceOptionsDecoder = strict.For[FenceOptions]()

// DecodeFenceOptions reads the body of a fence; an empty body asks for the
// defaults.
func DecodeFenceOptions(doc []byte) (FenceOptions, *Status) {
	if len(doc) == 0 {
		return FenceOptions{}, nil
	}
	o, status := decode(fenceOptionsDecoder, doc)
	if status == nil {
		status = checkText("reason", o.Reason)
	}
	if status != nil {
		return FenceOptions{}, status
	}
	return *o, nil
}
