package constraint_test

import (
	"fmt"
	"testing"

	"github.com/musterd/muster/constraint"
)

func required(key string, o constraint.Operator, values ...string) *constraint.Set {
	return constraint.Compile(constraint.Spec{Required: []constraint.Term{{{Key: key, Operator: o, Values: values}}}})
}

func TestOperators(t *testing.T) {
	const absent = "\x00" // for a node without the label
	cases := map[string]struct {
		operator constraint.Operator
		values   []string
		holds    []string
		fails    []string
	}{
		"In holds for any of its values":          {constraint.In, []string{"a", "b"}, []string{"a", "b"}, []string{"c", "", absent}},
		"In of nothing holds for no node":         {constraint.In, nil, nil, []string{"a", "", absent}},
		"In takes the empty value for a value":    {constraint.In, []string{""}, []string{""}, []string{"a", absent}},
		"NotIn holds without the label":           {constraint.NotIn, []string{"a"}, []string{"b", "", absent}, []string{"a"}},
		"NotIn of nothing holds for every node":   {constraint.NotIn, nil, []string{"a", "", absent}, nil},
		"Exists holds for any value":              {constraint.Exists, nil, []string{"a", ""}, []string{absent}},
		"DoesNotExist is the opposite":            {constraint.DoesNotExist, nil, []string{absent}, []string{"a", ""}},
		"Gt is strict and compares numbers":       {constraint.Gt, []string{"9"}, []string{"10", "010"}, []string{"9", "8", "-10", "x", "", absent}},
		"Gte takes the number itself":             {constraint.Gte, []string{"9"}, []string{"9", "+9", "10"}, []string{"8", "9x", absent}},
		"Lt is strict":                            {constraint.Lt, []string{"9"}, []string{"8", "-10"}, []string{"9", "10", "", absent}},
		"Lte takes the number itself":             {constraint.Lte, []string{"-9"}, []string{"-9", "-10"}, []string{"-8", "9", absent}},
		"nothing is greater than the greatest":    {constraint.Gt, []string{"9223372036854775807"}, nil, []string{"9223372036854775807", "9223372036854775808"}},
		"nothing is less than the least":          {constraint.Lt, []string{"-9223372036854775808"}, nil, []string{"-9223372036854775808", "0"}},
		"a comparison with a word never holds":    {constraint.Gt, []string{"x"}, nil, []string{"1", "x"}},
		"a comparison takes exactly one number":   {constraint.Gt, []string{"1", "2"}, nil, []string{"0", "3"}},
		"a comparison with nothing never holds":   {constraint.Lte, nil, nil, []string{"0", "3"}},
		"an unknown operator holds for no node":   {constraint.ParseOperator("Like"), []string{"a"}, nil, []string{"a", "b", absent}},
		"names of operators have capital letters": {constraint.ParseOperator("in"), []string{"a"}, nil, []string{"a", absent}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var table constraint.Table
			set := required("k", c.operator, c.values...)
			for want, values := range map[bool][]string{true: c.holds, false: c.fails} {
				for _, v := range values {
					labels := map[string]string{"k": v}
					if v == absent {
						labels = nil
					}
					if got := set.Allows(table.Intern(labels, nil)); got != want {
						t.Errorf("the label %q: allowed %t, want %t", labels, got, want)
					}
				}
			}
			if got, want := set.Allows(nil), set.Allows(table.Intern(nil, nil)); got != want {
				t.Errorf("nil labels: allowed %t, empty ones %t", got, want)
			}
		})
	}
}

func TestOperatorsAreParsedByName(t *testing.T) {
	for o := constraint.In; o <= constraint.Lte; o++ {
		if got := constraint.ParseOperator(o.String()); got != o {
			t.Errorf("%s is parsed as %s", o, got)
		}
	}
	if got := constraint.Operator(99).String(); got != "Unknown" || constraint.ParseOperator(got) != constraint.Unknown {
		t.Errorf("an operator out of range is %s", got)
	}
}

func TestTaints(t *testing.T) {
	gpu := constraint.Taint{Key: "gpu", Value: "yes", Effect: constraint.NoSchedule}
	with := func(e constraint.Effect) constraint.Taint {
		return constraint.Taint{Key: "gpu", Value: "yes", Effect: e}
	}
	cases := map[string]struct {
		taints      []constraint.Taint
		tolerations []constraint.Toleration
		want        string // of the refusal, "" for none
	}{
		"NoSchedule keeps away":                  {[]constraint.Taint{gpu}, nil, "Taint: taint gpu=yes:NoSchedule is not tolerated"},
		"NoExecute keeps away":                   {[]constraint.Taint{with(constraint.NoExecute)}, nil, "Taint: taint gpu=yes:NoExecute is not tolerated"},
		"an effect of another day keeps away":    {[]constraint.Taint{with("Later")}, nil, "Taint: taint gpu=yes:Later is not tolerated"},
		"PreferNoSchedule does not":              {[]constraint.Taint{with(constraint.PreferNoSchedule)}, nil, ""},
		"key and value are tolerated":            {[]constraint.Taint{gpu}, []constraint.Toleration{{Key: "gpu", Value: "yes"}}, ""},
		"another value is not":                   {[]constraint.Taint{gpu}, []constraint.Toleration{{Key: "gpu", Value: "no"}}, "Taint: taint gpu=yes:NoSchedule is not tolerated"},
		"any value is":                           {[]constraint.Taint{gpu}, []constraint.Toleration{{Key: "gpu", AnyValue: true}}, ""},
		"any value of another key is not":        {[]constraint.Taint{gpu}, []constraint.Toleration{{Key: "cpu", AnyValue: true}}, "Taint: taint gpu=yes:NoSchedule is not tolerated"},
		"no key is every key, with any value":    {[]constraint.Taint{gpu}, []constraint.Toleration{{AnyValue: true}}, ""},
		"no key is no key, with one value":       {[]constraint.Taint{gpu}, []constraint.Toleration{{Value: "yes"}}, "Taint: taint gpu=yes:NoSchedule is not tolerated"},
		"a toleration of the effect":             {[]constraint.Taint{gpu}, []constraint.Toleration{{AnyValue: true, Effect: constraint.NoSchedule}}, ""},
		"a toleration of another effect":         {[]constraint.Taint{gpu}, []constraint.Toleration{{AnyValue: true, Effect: constraint.NoExecute}}, "Taint: taint gpu=yes:NoSchedule is not tolerated"},
		"the first that is not tolerated counts": {[]constraint.Taint{gpu, {Key: "b", Effect: constraint.NoExecute}, {Key: "a", Effect: constraint.NoExecute}}, []constraint.Toleration{{Key: "gpu", AnyValue: true}}, "Taint: taint b:NoExecute is not tolerated"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var table constraint.Table
			set, got := constraint.Compile(constraint.Spec{Tolerations: c.tolerations}), ""
			l := table.Intern(map[string]string{"zone": "a"}, c.taints)
			if r := set.Refusal(l); r != nil {
				got = r.String()
			}
			if got != c.want || set.Allows(l) != (got == "") {
				t.Errorf("got %q, want %q; allowed %t", got, c.want, set.Allows(l))
			}
		})
	}
}

func TestKeys(t *testing.T) {
	exists := constraint.Term{{Key: "zone", Operator: constraint.Exists}}
	never := constraint.Term{{Key: "zone", Operator: constraint.In}}
	term := func(o constraint.Operator, values ...string) constraint.Spec {
		return constraint.Spec{Required: []constraint.Term{{{Key: "k", Operator: o, Values: values}}}}
	}
	tolerate := func(o ...constraint.Toleration) constraint.Spec { return constraint.Spec{Tolerations: o} }
	cases := map[string]struct {
		a, b constraint.Spec
		same bool
	}{
		"empty lists and nil":                      {constraint.Spec{NodeSelector: map[string]string{}, Required: []constraint.Term{}}, constraint.Spec{}, true},
		"a term that always matches":               {constraint.Spec{Required: []constraint.Term{exists, {}}}, constraint.Spec{}, true},
		"a term that never matches":                {constraint.Spec{Required: []constraint.Term{exists, never}}, constraint.Spec{Required: []constraint.Term{exists}}, true},
		"nothing but such terms":                   {constraint.Spec{Required: []constraint.Term{never}}, constraint.Spec{}, false},
		"values in another order":                  {term(constraint.In, "a", "b"), term(constraint.In, "b", "a", "a"), true},
		"other values":                             {term(constraint.In, "a", "b"), term(constraint.In, "a b"), false},
		"another operator":                         {term(constraint.In, "a"), term(constraint.NotIn, "a"), false},
		"Gt and the next number":                   {term(constraint.Gt, "8"), term(constraint.Gte, "09"), true},
		"Lt and the number before":                 {term(constraint.Lt, "8"), term(constraint.Lte, "+7"), true},
		"quotes are no way out":                    {constraint.Spec{NodeSelector: map[string]string{"a": `b" select "c"="d`}}, constraint.Spec{NodeSelector: map[string]string{"a": "b", "c": "d"}}, false},
		"weights of equal terms":                   {constraint.Spec{Preferred: []constraint.Preference{{1, exists}, {2, exists}}}, constraint.Spec{Preferred: []constraint.Preference{{3, exists}}}, true},
		"another weight":                           {constraint.Spec{Preferred: []constraint.Preference{{1, exists}}}, constraint.Spec{Preferred: []constraint.Preference{{3, exists}}}, false},
		"preferred is not required":                {constraint.Spec{Preferred: []constraint.Preference{{1, exists}}}, constraint.Spec{Required: []constraint.Term{exists}}, false},
		"everything is tolerated":                  {tolerate(constraint.Toleration{Key: "a"}, constraint.Toleration{AnyValue: true}), tolerate(constraint.Toleration{AnyValue: true, Value: "x"}), true},
		"any value and the empty one":              {tolerate(constraint.Toleration{Key: "a"}), tolerate(constraint.Toleration{Key: "a", AnyValue: true}), false},
		"PreferNoSchedule makes some nodes better": {tolerate(constraint.Toleration{AnyValue: true, Effect: constraint.PreferNoSchedule}), constraint.Spec{}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			a, b := constraint.Compile(c.a), constraint.Compile(c.b)
			if same := a.Key() == b.Key(); same != c.same {
				t.Errorf("equal: %t, want %t\n%s\n%s", same, c.same, a.Key(), b.Key())
			}
		})
	}
}

func ExampleCompile() {
	set := constraint.Compile(constraint.Spec{
		NodeSelector: map[string]string{"zone": "b"},
		Required:     []constraint.Term{{{Key: "generation", Operator: constraint.Gt, Values: []string{"8"}}}},
		Tolerations:  []constraint.Toleration{{Key: "team", Value: "vision"}},
	})
	fmt.Println(set.Key())
	var table constraint.Table
	fmt.Println(set.Allows(table.Intern(map[string]string{"zone": "b", "generation": "9"}, nil)))
	fmt.Println(set.Refusal(table.Intern(map[string]string{"zone": "a"}, nil)))
	// Output:
	// select "zone"="b" require ("generation" Gte 9) tolerate "team"="vision":""
	// true
	// NodeSelector: label zone is a, want b
}
