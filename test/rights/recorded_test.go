package rights

import (
	"strings"
	"testing"

	"github.com/musterd/muster/coordinator/rest/restdoc"
	"github.com/musterd/muster/coordinator/service"
)

// rightOf is the right that a request of a client has asked for, and its place; false for
// a request that needs no token.
func (h *house) rightOf(all map[string]restdoc.Route, a answered) (asked, bool) {
	r, found := all[a.pattern]
	if !found {
		return asked{}, false
	}
	right := asked{r.Kind, r.Verb, placesOf(r)[0]}
	if a.watch && r.Verb == service.VerbList && service.Needs(service.VerbWatch, r.Kind) != service.Nobody {
		right.verb = service.VerbWatch
	}
	if right.place == inOwn && (strings.Contains(a.path, other) || strings.Contains(a.path, h.ids[other])) {
		right.place = inOther
	}
	return right, true
}

// checkAnswers compares the answers to the requests that a client has sent as one role.
// A creation whose body names the other tenant is at that place: in says so.
func (h *house) checkAnswers(t *testing.T, d door, what, role string, in place, see func(door, asked) answers) (refused bool) {
	t.Helper()
	all := routes()
	for i, a := range h.take() {
		right, needed := h.rightOf(all, a)
		if !needed {
			continue
		}
		if right.place == inOwn && !strings.Contains(a.path, own) && right.verb == service.VerbCreate {
			right.place = in
		}
		row := see(d, right)
		if row == nil {
			continue
		}
		got := answerOf(a.code)
		if want := row.of(role); got != want {
			t.Errorf("%s as %s: %s answers %d, want %s", what, role, a.pattern, a.code, want)
		}
		refused = refused || i == 0 && got != yes
	}
	return refused
}
