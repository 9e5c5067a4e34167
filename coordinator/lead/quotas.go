package lead

import (
	"github.com/musterd/muster/api"
	"github.com/musterd/muster/resource"
)

// takeResourceQuota takes over a resource quota that is durable. Where the users of a
// namespace are counted from now on, or no more, its units get other classes.
func (l *Leader) takeResourceQuota(object api.ResourceQuota, rev resource.Revision) {
	namespace := object.Metadata.Namespace
	before := l.quotas.Limits().CountsUsers(namespace)
	l.quotas.SetResourceQuota(object, rev)
	l.regroup(namespace, before)
}

// dropResourceQuota forgets a resource quota, as takeResourceQuota takes one over.
func (l *Leader) dropResourceQuota(namespace, name string) {
	before := l.quotas.Limits().CountsUsers(namespace)
	l.quotas.RemoveResourceQuota(namespace, name)
	l.regroup(namespace, before)
}

func (l *Leader) regroup(namespace string, countedUsers bool) {
	if l.quotas.Limits().CountsUsers(namespace) != countedUsers {
		l.offerAgain(namespace)
	}
}

// sampleQuotas notes every hour how far the resource quotas are used.
func (l *Leader) sampleQuotas() {
	l.quotas.Sample(l.post.Now())
}
