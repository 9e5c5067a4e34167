package lead

import (
	"fmt"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/charges"
	"github.com/musterd/muster/coordinator/record"
)

func resourceQuotaKey(namespace, name string) record.QuotaKey {
	return record.QuotaKey{Kind: record.QuotaResources, Namespace: namespace, Name: name}
}

func resourceQuotaName(namespace, name string) string {
	return fmt.Sprintf("resource quota %s of namespace %s", name, namespace)
}

// notConfigured refuses to change what the coordinators' configuration says.
func notConfigured(namespace, name string) *api.Status {
	if name == configQuota {
		return api.Errorf(409, "%s is set by the coordinators' configuration: change it there, or make another quota beside it", resourceQuotaName(namespace, name)).Because(api.FailedPrecondition)
	}
	return nil
}

func (l *Leader) resourceQuota(namespace, name string) (*charges.Quota, *api.Status) {
	if q := l.quotas.Quota(namespace + "/" + name); q != nil {
		return q, nil
	}
	return nil, NoResourceQuota(namespace, name)
}

func NoResourceQuota(namespace, name string) *api.Status {
	return api.Errorf(404, "resource quota %s not found in namespace %s", name, namespace)
}
