package enroll

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/musterd/muster/coordinator/record"
)

// many are the certificates of so many operators, each with the same number.
func many(operators, each int) (all []OperatorStatus) {
	for i := range operators {
		for range each {
			all = append(all, OperatorStatus{Operator: record.Operator{Name: fmt.Sprintf("op-%d", i)}})
		}
	}
	return all
}

func TestRoomForOperator(t *testing.T) {
	cases := map[string]struct {
		all  []OperatorStatus
		name string
		says string // "" = there is room
	}{
		"the first operator":                         {nil, "op-0", ""},
		"the last new operator":                      {many(maxOperators-1, 1), "new", ""},
		"one operator too many":                      {many(maxOperators, 1), "new", "1000 operators have certificates"},
		"many certificates of few operators":         {many(100, maxOfOperator), "new", ""},
		"a renewal where there is no new operator":   {many(maxOperators, 1), "op-7", ""},
		"a renewal beside many certificates":         {many(maxOperators, maxOfOperator-1), "op-7", ""},
		"more certificates than one operator's":      {many(1, maxOfOperator), "op-0", "operator op-0 has 16 certificates"},
		"an operator at the bound bars only himself": {many(1, maxOfOperator), "op-1", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := roomForOperator(c.all, c.name)
			if c.says == "" && err != nil {
				t.Fatal(err)
			}
			if c.says != "" && (!errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%v, want ErrInvalid and %q", err, c.says)
			}
		})
	}
}
