package api

import "github.com/musterd/muster/api/internal/strict"

// FenceOptions is the optional body of a fence. From a fence on no transaction
// counts on the promises of the node's agent, until the agent registers again. The
// work on the node goes on.
type FenceOptions struct {
	// ConfirmDead is an operator's statement that the machine is off, or that no work
	// of Muster runs on it any more. Each unit with a member there ends whole, with
	// the reason NodeLost.
	ConfirmDead bool `json:"confirmDead,omitempty" default:"false" example:"true"`
	// Force fences a node whose agent still answers.
	Force bool `json:"force,omitempty" default:"false" example:"true"`
	// Reason is kept for people: at most 1024 bytes.
	Reason string `json:"reason,omitempty" text:"lines" example:"power supply failed"`
}

var fenceOptionsDecoder = strict.For[FenceOptions]()

// DecodeFenceOptions reads the body of a fence; an empty body asks for the
// defaults.
func DecodeFenceOptions(doc []byte) (FenceOptions, *Status) {
	return decodeOptions(fenceOptionsDecoder, doc, func(o *FenceOptions) *Status { return checkText("reason", o.Reason) })
}
