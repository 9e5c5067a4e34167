package service

import (
	"crypto/rand"
	"strings"

	"github.com/musterd/muster/api"
)

// maxRequestID bounds an id that a client gives to its request, in characters.
const maxRequestID = 128

// RequestID is the id of a request: the client's id, or a new id where the client's is
// missing, too long or no visible ASCII.
func RequestID(given string) string {
	valid := given != "" && len(given) <= maxRequestID
	for i := range len(given) {
		valid = valid && given[i] > ' ' && given[i] <= '~'
	}
	if valid {
		return given
	}
	return strings.ToLower(rand.Text())
}

// Notice completes a request to evict with the name of the caller and the reason.
func Notice(p api.PreemptionRequest, by Principal) api.PreemptionRequest {
	if p.InitiatedBy == "" {
		p.InitiatedBy = by.Name
	}
	if p.Reason == "" {
		p.Reason = "evicted by an operator"
	}
	return p
}
