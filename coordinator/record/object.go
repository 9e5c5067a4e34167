package record

import (
	"encoding/json"
	"errors"
)

// Object is a tenant, a namespace, a resource, a queue or a priority class as an operator
// set it (TenantsPrefix, NamespacesPrefix, ResourcesPrefix, QueuesPrefix, PriorityClassesPrefix).
type Object struct {
	UID  string `json:"uid"`
	Name string `json:"name"`
	// Document is the object as it was submitted: its kind, the operator's part of
	// its metadata, and its specification.
	Document json.RawMessage `json:"document"`
	Created  string          `json:"created,omitempty"` // RFC 3339
}

func (o Object) check() error {
	switch {
	case o.UID == "":
		return errors.New("uid is empty")
	case o.Name == "":
		return errors.New("name is empty")
	case len(o.Document) == 0:
		return errors.New("document is empty")
	}
	return nil
}

// Configured says that the namespaces of the configuration have become objects
// (ConfiguredKey). Without this key the next leader makes those that are missing.
type Configured struct {
	By string `json:"by"` // the coordinator whose configuration it was
	At string `json:"at"` // RFC 3339
}

func (c Configured) check() error {
	if c.By == "" {
		return errors.New("by is empty")
	}
	return nil
}
