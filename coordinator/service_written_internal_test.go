package coordinator

import (
	"errors"
	"testing"

	"github.com/musterd/muster/api"
)

// The answer of a change is that change: neither a later version of the object, nor
// another object of its name, nor the error of a read.
func TestAChangeIsAnsweredWithItsOwnVersion(t *testing.T) {
	queue := func(uid, version, status string) *api.Queue {
		return &api.Queue{Metadata: api.ObjectMeta{Name: "q", UID: uid, ResourceVersion: version, Labels: map[string]string{"from": status}}}
	}
	done := queue("u", "7", "leader")
	for name, c := range map[string]struct {
		read *api.Queue
		err  error
		want string
	}{
		"the read shows the change":       {queue("u", "7", "read"), nil, "read"},
		"the object changed once more":    {queue("u", "9", "read"), nil, "leader"},
		"another object has the name now": {queue("v", "7", "read"), nil, "leader"},
		"nothing can be read":             {nil, errors.New("not ready"), "leader"},
	} {
		t.Run(name, func(t *testing.T) {
			got := sameVersion(func(q *api.Queue) *api.ObjectMeta { return &q.Metadata }, done, c.read, c.err)
			if got.Metadata.Labels["from"] != c.want {
				t.Errorf("the answer is of the %s, want that of the %s", got.Metadata.Labels["from"], c.want)
			}
		})
	}
}
