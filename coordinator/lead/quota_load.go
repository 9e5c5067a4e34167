package lead

import (
	"time"

	"maps"
	"slices"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/coordinator/lead/charges"
	"github.com/musterd/muster/coordinator/lead/edit"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// configQuota is the name of the resource quota that a namespace has by
// configuration.
const configQuota = "config"

// loadQuotas takes the quota objects that the store has; the configuration's
// own come on top (prepareQuotas).
func (v *view) loadQuotas(kvs []record.KV, now time.Time) error {
	for _, kv := range kvs {
		if mine, err := v.objects.Load(kv); err != nil {
			return err
		} else if mine {
			continue
		}
		if err := v.quotas.Load(kv, now); err != nil {
			return err
		}
	}
	return nil
}

// configuredQuota is the resource quota by which a namespace's configured
// limit is kept.
func (l *Leader) configuredQuota(namespace string, hard resource.Vector) api.ResourceQuota {
	q := api.ResourceQuota{APIVersion: api.APIVersion, Kind: api.KindResourceQuota}
	q.Metadata = api.ObjectMeta{Name: configQuota, Namespace: namespace, UID: l.post.UID("quota"), CreationTimestamp: l.post.Stamp()}
	q.Spec.Hard = map[resource.Name]string{}
	for name, amount := range hard {
		if amount != resource.Unlimited {
			q.Spec.Hard[name] = resource.FormatAmount(name, amount)
		}
	}
	return q
}

// configQuotas are the changes that make the resource quotas named "config" those
// of this coordinator's configuration, and delete what the version before wrote
// in their place.
func (l *Leader) configQuotas() []edit.Write {
	var changes []edit.Write
	for _, key := range l.quotas.OutdatedKeys() {
		changes = append(changes, edit.Write{Op: record.Delete(key), Landed: func(resource.Revision) {}})
	}
	for _, key := range l.quotas.QuotaKeys() {
		m := l.quotas.Quota(key).Object.Metadata
		if m.Name == configQuota && l.rules.Namespaces[m.Namespace].Hard == nil { // no longer configured
			changes = append(changes, edit.Write{
				Op:     record.Delete(record.QuotaKey{Kind: record.QuotaResources, Namespace: m.Namespace, Name: m.Name}.Key()),
				Landed: func(resource.Revision) { l.quotas.RemoveResourceQuota(m.Namespace, m.Name) },
			})
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(l.rules.Namespaces)) {
		hard := l.rules.Namespaces[namespace].Hard
		if hard == nil {
			continue
		}
		object := l.configuredQuota(namespace, hard)
		if before := l.quotas.Quota(namespace + "/" + configQuota); before != nil {
			if maps.Equal(before.Object.Spec.Hard, object.Spec.Hard) {
				continue
			}
			object.Metadata.UID, object.Metadata.CreationTimestamp = before.Object.Metadata.UID, before.Object.Metadata.CreationTimestamp
		}
		key := record.QuotaKey{Kind: record.QuotaResources, Namespace: namespace, Name: configQuota}
		changes = append(changes, edit.Write{
			Op: record.Put(key.Key(), record.MustEncode(*charges.RecordOf(object.Metadata, object))),
			Landed: func(rev resource.Revision) {
				object.Metadata = edit.At(object.Metadata, rev)
				l.quotas.SetResourceQuota(object, rev)
			},
		})
	}
	return changes
}

// ConfigOps are the writes that make the quotas of the configuration those in
// force. Load decides them; ConfigWritten says how many of them are durable.
func (l *Leader) ConfigOps() []record.Op {
	ops := make([]record.Op, len(l.config))
	for i, w := range l.config {
		ops[i] = w.Op
	}
	return ops
}

// takeConfig takes over the next configured quotas, which have been written.
func (l *Leader) takeConfig(in ConfigWritten) {
	for _, w := range l.config[:in.Count] {
		w.Landed(in.Revision)
	}
	if l.config = l.config[in.Count:]; len(l.config) == 0 {
		l.quotas.ForgetOutdated()
		l.reportOverQuota()
	}
}
