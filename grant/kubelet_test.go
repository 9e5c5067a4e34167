package grant_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/musterd/muster/grant"
)

func TestThePoolOfOperatorsNamesEachDeviceOnce(t *testing.T) {
	many := func(n int) (list []string) {
		for i := range n {
			list = append(list, fmt.Sprintf("GPU-%d", i))
		}
		return list
	}
	for name, c := range map[string]struct {
		pool grant.KubeletPool
		want string // in the error; "" is none
	}{
		"nothing":                    {},
		"different devices":          {pool: grant.KubeletPool{Add: []string{"GPU-a"}, Remove: []string{"GPU-b"}}},
		"as many as there may be":    {pool: grant.KubeletPool{Add: many(grant.MaxKubeletPool)}},
		"one more":                   {grant.KubeletPool{Remove: many(grant.MaxKubeletPool + 1)}, "0 devices to add and 513 to remove"},
		"a device twice in one list": {grant.KubeletPool{Add: []string{"GPU-a", "GPU-b", "GPU-a"}}, `"GPU-a" is named twice`},
		"a device in both lists":     {grant.KubeletPool{Add: []string{"GPU-a"}, Remove: []string{"GPU-a"}}, `"GPU-a" is named twice`},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.pool.Check()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}
