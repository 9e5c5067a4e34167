package daemon

import (
	"testing"

	"github.com/musterd/muster/coordinator/store/etcd"
)

func TestAStoreThatLocalUsersCanReadIsKnown(t *testing.T) {
	for name, c := range map[string]struct {
		config etcd.Config
		want   bool
	}{
		"the embedded one":           {etcd.Config{}, false},
		"plain, on loopback":         {etcd.Config{Endpoints: []string{"127.0.0.1:2379"}}, true},
		"plain, by its URL":          {etcd.Config{Endpoints: []string{"http://127.0.0.1:2379", "http://127.0.0.1:2380"}}, true},
		"plain, with a user":         {etcd.Config{Endpoints: []string{"http://127.0.0.1:2379"}, Username: "muster"}, false},
		"with TLS, without any user": {etcd.Config{Endpoints: []string{"https://127.0.0.1:2379"}}, false},
	} {
		if got := openToLocalUsers(c.config); got != c.want {
			t.Errorf("%s: open %t, want %t", name, got, c.want)
		}
	}
}
