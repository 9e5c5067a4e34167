package api_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

func TestASumIsInTheUnitOfItsSummands(t *testing.T) {
	type texts = map[resource.Name]string
	for name, c := range map[string]struct {
		requests []texts
		want     texts
	}{
		"each in thousandths":       {[]texts{{"cpu": "8000m"}, {"cpu": "4000m"}}, texts{"cpu": "12000m"}},
		"one in whole units":        {[]texts{{"cpu": "8000m"}, {"cpu": "4"}}, texts{"cpu": "12"}},
		"all in whole units":        {[]texts{{"cpu": "8"}, {"cpu": "4"}}, texts{"cpu": "12"}},
		"memory in one unit":        {[]texts{{"memory": "1024Mi"}, {"memory": "1024Mi"}}, texts{"memory": "2048Mi"}},
		"memory in two units":       {[]texts{{"memory": "1024Mi"}, {"memory": "1Gi"}}, texts{"memory": "2Gi"}},
		"fractions are no unit":     {[]texts{{"cpu": "1.5"}, {"cpu": "1.5"}}, texts{"cpu": "3"}},
		"an exponent is no unit":    {[]texts{{"cpu": "1e3"}, {"cpu": "1e3"}}, texts{"cpu": "2000"}},
		"an amount nobody wrote":    {[]texts{{}}, texts{}},
		"two resources, one of one": {[]texts{{"cpu": "500m"}, {"cpu": "500m", "nvidia.com/gpu": "1"}}, texts{"cpu": "1000m", "nvidia.com/gpu": "1"}},
	} {
		t.Run(name, func(t *testing.T) {
			sum, forms := resource.Vector{}, api.Forms{}
			for _, r := range c.requests {
				v := vectorOf(t, r)
				sum.Add(v)
				forms.Note(v, r)
			}
			if diff := cmp.Diff(c.want, forms.Amounts(sum)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

type fataler interface{ Fatal(...any) }

func vectorOf(t fataler, requests map[resource.Name]string) resource.Vector {
	v := resource.Vector{}
	for name, text := range requests {
		amount, err := api.ParseAmount(name, text)
		if err != nil {
			t.Fatal(err)
		}
		v[name] = amount
	}
	return v
}

// However the summands were written, the printed sum is the sum.
func TestAPrintedSumIsTheSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sum, forms := resource.Vector{}, api.Forms{}
		for range rapid.IntRange(1, 5).Draw(t, "summands") {
			r := map[resource.Name]string{"cpu": rapid.StringMatching(`[1-9][0-9]{0,3}(m|k)?|[1-9]\.5|[1-9]e[1-3]`).Draw(t, "cpu"), "memory": rapid.StringMatching(`[1-9][0-9]{0,2}(Mi|Gi|M|)`).Draw(t, "memory")}
			v := vectorOf(t, r)
			sum.Add(v)
			forms.Note(v, r)
		}
		if diff := cmp.Diff(sum, vectorOf(t, forms.Amounts(sum))); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}
