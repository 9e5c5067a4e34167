package api

// ResourceQuotaList is a list of resource quotas, ordered by namespace and name.
type ResourceQuotaList struct {
	// Kind is ResourceQuotaList.
	Kind string `json:"kind" oneof:"ResourceQuotaList"`
	// Metadata has the revision and the token of the next page.
	Metadata ListMeta `json:"metadata"`
	// Items are the quotas.
	Items []ResourceQuota `json:"items"`
}

// QuotaTreeList is a list of quota trees, ordered by name.
type QuotaTreeList struct {
	// Kind is QuotaTreeList.
	Kind string `json:"kind" oneof:"QuotaTreeList"`
	// Metadata has the revision and the token of the next page.
	Metadata ListMeta `json:"metadata"`
	// Items are the trees.
	Items []QuotaTree `json:"items"`
}

// QuotaForestList is a list of quota forests, ordered by name.
type QuotaForestList struct {
	// Kind is QuotaForestList.
	Kind string `json:"kind" oneof:"QuotaForestList"`
	// Metadata has the revision and the token of the next page.
	Metadata ListMeta `json:"metadata"`
	// Items are the forests.
	Items []QuotaForest `json:"items"`
}

// QuotaBindingList is a list of quota bindings, ordered by namespace.
type QuotaBindingList struct {
	// Kind is QuotaBindingList.
	Kind string `json:"kind" oneof:"QuotaBindingList"`
	// Metadata has the revision and the token of the next page.
	Metadata ListMeta `json:"metadata"`
	// Items are the bindings.
	Items []QuotaBinding `json:"items"`
}
