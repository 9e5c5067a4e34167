package work

import (
	"testing"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/record"
)

// Units that ask for other amounts of a resource of the cluster are of other classes,
// since the refusal of a class implies nothing for another. Their demands of nodes are equal.
func TestAClassHasOneAmountOfAClusterResource(t *testing.T) {
	unitOf := func(requests string) *Unit {
		doc, status := api.DecodeAllocation([]byte(`{"metadata":{"name":"a"},"spec":{"resources":{"requests":` + requests + `}}}`))
		if status != nil {
			t.Fatal(status)
		}
		u, status := NewUnit("ml", record.Unit{UID: "u", Kind: record.AllocUnit, Namespace: "ml", Name: "a", Members: 3}, doc.Spec, nil, "")
		if status != nil {
			t.Fatal(status)
		}
		return u
	}
	none, one, two := unitOf(`{"cpu":"1"}`), unitOf(`{"cpu":"1","example.com/seat":"1"}`), unitOf(`{"cpu":"1","example.com/seat":"2"}`)
	if none.Shape != one.Shape || one.Shape != two.Shape {
		t.Errorf("shapes %q, %q and %q differ", none.Shape, one.Shape, two.Shape)
	}
	if none.ChargesKey() == one.ChargesKey() || one.ChargesKey() == two.ChargesKey() {
		t.Errorf("charge keys %q, %q and %q are not all different", none.ChargesKey(), one.ChargesKey(), two.ChargesKey())
	}
	if again := unitOf(`{"example.com/seat":"2","cpu":"1000m"}`); again.ChargesKey() != two.ChargesKey() {
		t.Errorf("equal units have the charge keys %q and %q", again.ChargesKey(), two.ChargesKey())
	}
	if got := two.Charge.Request["example.com/seat"]; got != 6 {
		t.Errorf("3 members of 2 seats are charged %d", got)
	}
}
