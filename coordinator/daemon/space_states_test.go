package daemon_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/store/etcd"
	"github.com/musterd/muster/test/etcdcluster"
	"github.com/musterd/muster/test/long"
)

// TestAStoreThatDoesNotAnswerIsNamed: each request has an answer in time with the reason,
// whether the members are stopped or gone, or a majority of them.
func TestAStoreThatDoesNotAnswerIsNamed(t *testing.T) {
	long.Only(t, "each request waits 2.5 s; TestWhatARequestWaitsFor of coordinator/service holds the rule in fake time")
	for name, c := range map[string]struct {
		members int
		end     func(*etcdcluster.Cluster)
	}{
		"a member that is stopped": {1, func(c *etcdcluster.Cluster) { c.Pause(0) }},
		"a member that is gone":    {1, func(c *etcdcluster.Cluster) { c.Kill(0) }},
		"no majority":              {3, func(c *etcdcluster.Cluster) { c.Kill(0); c.Kill(1) }},
	} {
		t.Run(name, func(t *testing.T) {
			members := etcdcluster.Start(t, etcdcluster.Options{Members: c.members})
			s := serveOn(t, members, etcd.Config{})
			token, invited := s.contents()
			c.end(members)
			s.ask("GET", inDefault+"/allocations/a", "")
			<-time.After(time.Second)
			s.judgeAll(storeRequests(token, invited.Metadata.Name), func(r storeRequest) int {
				if r.unasked {
					return http.StatusOK
				}
				return http.StatusServiceUnavailable
			}, api.StoreNotAnswering, "has not answered")
			s.judgeCalls(t, func(storeCall) int { return 503 }, api.StoreNotAnswering)
			s.enrols(t, invited, "has not answered")
			s.judge(storeRequest{method: "GET", path: "/readyz"}, 503, api.StoreNotAnswering, "has not answered")
		})
	}
}

// TestAStoreToReadIsNamed: reads go on where the user of the coordinator may not write any
// more, each change is refused with the reason, and all is well with the right again.
func TestAStoreToReadIsNamed(t *testing.T) {
	long.Only(t, "a real etcd; TestALookFindsTheFault of coordinator/store/condition and TestWhatARequestWaitsFor hold the rules")
	members := etcdcluster.Start(t, etcdcluster.Options{Members: 1, Auth: true})
	s := serveOn(t, members, etcd.Config{Username: etcdcluster.MusterUser, Password: etcdcluster.Password})
	token, invited := s.contents()
	grant := func(p clientv3.PermissionType) {
		if _, err := members.Admin().RoleGrantPermission(t.Context(), etcdcluster.MusterUser, "/registry/", clientv3.GetPrefixRangeEnd("/registry/"), p); err != nil {
			t.Fatal(err)
		}
	}
	grant(clientv3.PermissionType(clientv3.PermRead))
	s.judgeAll(storeRequests(token, invited.Metadata.Name), func(r storeRequest) int {
		if r.method == http.MethodGet || r.unasked || strings.Contains(r.path, "labelSelector") { // which has a failure for each object
			return http.StatusOK
		}
		return http.StatusServiceUnavailable
	}, api.StoreReadOnly, "read alone")
	s.judge(storeRequest{method: "GET", path: "/readyz"}, 503, api.StoreReadOnly, "read alone")
	grant(clientv3.PermissionType(clientv3.PermReadWrite))
	s.awaitReady()
	s.made("DELETE", inDefault+"/allocations/b", "")
}
