package service

import (
	"cmp"
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

// Vouched is the name of a person by the word of a caller, with the caller's name beside any
// other name, except for administrators.
func Vouched(by Principal, name string) string {
	if name == "" || name == by.Name || by.Everywhere(Admins) {
		return name
	}
	return name + " (says " + by.Name + ")"
}

// Notice completes a request to evict with the name of the caller and the reason.
func Notice(p api.PreemptionRequest, by Principal) api.PreemptionRequest {
	p.InitiatedBy = cmp.Or(Vouched(by, p.InitiatedBy), by.Name)
	if p.Reason == "" {
		p.Reason = "evicted by an operator"
	}
	return p
}
