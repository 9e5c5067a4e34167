package tenancy

import (
	"strings"
	"testing"
)

// A queue that nobody has written is there by the work that names it. To a tenant without
// a role in the whole cluster it is a queue that is not there, until an operator
// writes it.
func TestAQueueTellsNobodyOfTheWorkOfOthers(t *testing.T) {
	w := open(t)
	operator := w.token(`{"user":"eve","role":"operator"}`)
	absent := w.ask("GET", "/queues/nothing", w.ml, "")
	for who, c := range map[string]struct {
		token string
		seen  bool
	}{"an editor of another tenant": {w.ml, false}, "an operator": {operator, true}} {
		got := w.ask("GET", "/queues/zebu", c.token, "")
		if (got.code == 200) != c.seen {
			t.Errorf("%s gets %d %s", who, got.code, got.text)
		}
		if !c.seen && (got.code != absent.code || same(t, got)["message"] != same(t, absent)["message"]) {
			t.Errorf("%s gets %d %s, and for no queue %s", who, got.code, got.text, absent.text)
		}
		for _, path := range []string{"/queues", "/queues?watch=true", "/queues?fieldSelector=metadata.name%3Dzebu"} {
			if got := w.ask("GET", path, c.token, ""); got.code != 200 || strings.Contains(got.text, "zebu") != c.seen {
				t.Errorf("GET %s as %s: %d %s", path, who, got.code, got.text)
			}
		}
	}
	w.must("PUT", "/queues/zebu", `{"kind":"Queue","metadata":{"name":"zebu","labels":{"`+lastChange+`":"a"}},"spec":{"order":"Strict"}}`)
	for _, path := range []string{"/queues/zebu", "/queues", "/queues?watch=true"} {
		if got := w.ask("GET", path, w.ml, ""); got.code != 200 || !strings.Contains(got.text, "zebu") {
			t.Errorf("GET %s of a queue that was written: %d %s", path, got.code, got.text)
		}
	}
	if got := w.ask("GET", "/queues?watch=true&resourceVersion=1", w.ml, ""); strings.Contains(got.text, "MODIFIED") || !strings.Contains(got.text, `"ADDED"`) {
		t.Errorf("a watch over the change: %d %s", got.code, got.text)
	}
}
