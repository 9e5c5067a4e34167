package charges

import (
	"fmt"
	"time"

	"github.com/musterd/muster/api"
	"github.com/musterd/muster/api/text"
	"github.com/musterd/muster/coordinator/record"
	"github.com/musterd/muster/resource"
)

// Load takes a key of the quota objects that the store has.
func (q *Book) Load(kv record.KV, now time.Time) error {
	key, err := record.ParseQuotaKey(kv.Key)
	if err != nil {
		return err
	}
	switch key.Kind {
	case record.QuotaModes:
		return q.loadMode(kv)
	case record.QuotaSeats:
		rec, err := record.Decode[record.Seats](kv.Key, kv.Value)
		if err != nil {
			return err
		}
		q.loadedSeats[resource.TxID(key.Name)] = rec.Nodes
		return nil
	case record.QuotaLimits:
		if _, err := record.Decode[record.QuotaLimit](kv.Key, kv.Value); err != nil {
			return err
		}
		q.outdated = append(q.outdated, kv.Key)
		return nil
	case record.QuotaResources, record.QuotaTrees, record.QuotaForests, record.QuotaNamespaces:
	}
	rec, err := record.Decode[record.Quota](kv.Key, kv.Value)
	if err != nil {
		return err
	}
	if status := q.loadObject(key, rec, kv.ModRev, now); status != nil {
		return fmt.Errorf("%s: document: %w", kv.Key, status)
	}
	return nil
}

func (q *Book) loadObject(key record.QuotaKey, rec record.Quota, rev resource.Revision, now time.Time) error {
	switch key.Kind {
	case record.QuotaResources:
		object, status := text.Stored(api.DecodeResourceQuota, rec.Document)
		if status != nil {
			return status
		}
		object.Metadata = MetadataOf(rec, object.Metadata, rev)
		q.SetResourceQuota(*object, rev)
	case record.QuotaTrees:
		object, status := text.Stored(api.DecodeQuotaTree, rec.Document)
		if status != nil {
			return status
		}
		object.Metadata = MetadataOf(rec, object.Metadata, rev)
		spec, status := SpecOf(*object)
		if status != nil {
			return status
		}
		_, err := q.SetTree(*object, rev, spec, rec.Former)
		return err
	case record.QuotaForests, record.QuotaNamespaces, record.QuotaLimits, record.QuotaModes, record.QuotaSeats:
	}
	return nil
}

// OutdatedKeys are keys of the version before, to be deleted.
func (q *Book) OutdatedKeys() []string { return q.outdated }

// ForgetOutdated forgets those keys, which are deleted.
func (q *Book) ForgetOutdated() { q.outdated = nil }
