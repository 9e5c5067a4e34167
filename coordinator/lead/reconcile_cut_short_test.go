package lead

// reconciliationsCutShort are transcripts, as reconciliationScripts, in which an
// agent leaves, is late or registers, or a node is deleted.
var reconciliationsCutShort = map[string]string{
	"the agent leaves before it is asked, and does not come back": `
		> n1 connects in quarantine: lost 0
		> adopt n1
		  reads nodes/n1/spec
		> n1 leaves
		> the store answers
		  reads nodes/n1/identity
		> the store answers
		  tells n1: tell everything
		> 9 s pass
		> 1 s pass
		  answers 409: the agent of node n1 does not say what it holds: ask again when it is connected
	`,
	"the agent leaves when it is asked, and comes back": `
		> n1 connects in quarantine: lost 0
		> look n1
		  reads nodes/n1/spec
		> the store answers
		  reads nodes/n1/identity
		> the store answers
		  tells n1: tell everything
		> n1 leaves
		> 1 s pass
		> n1 connects in quarantine: lost 0
		  reads tx/lost
		> the store answers
		  answers: 1 grants, 1 records
	`,
	"the agent leaves while records are read": `
		> n1 connects in quarantine: lost 0
		> adopt n1
		  reads nodes/n1/spec
		> the store answers
		  reads nodes/n1/identity
		> the store answers
		  tells n1: tell everything
		> n1 tells all
		  reads tx/lost
		> n1 leaves
		> the store answers
		  writes tx/back RELEASING, units/default/alloc/back/0
		> the store answers
		  writes nodes/n1/tx/lost, tx/lost COMMITTED, units/default/alloc/lost/0
		> the store answers
		  reads nodes/n1/identity
		> the store answers
		  answers 409: the agent of node n1 was disconnected before it was told; ask again: what was adopted is not adopted twice
	`,
	"the agent leaves while a record is made, and comes back": `
		> n1 connects in quarantine: lost 0
		> adopt n1
		  reads nodes/n1/spec
		> the store answers
		  reads nodes/n1/identity
		> the store answers
		  tells n1: tell everything
		> n1 tells all
		  reads tx/lost
		> the store answers
		  writes tx/back RELEASING, units/default/alloc/back/0
		> the store answers
		  writes nodes/n1/tx/lost, tx/lost COMMITTED, units/default/alloc/lost/0
		> n1 leaves
		> the store answers
		  reads nodes/n1/identity
		> n1 connects in quarantine: lost 0
		> the store answers
		  tells n1: adopted lost, released nothing
		  logs node_reconciled
		> n1 registers
		  tells n1: release back, StoreRestored
		  tells n1: commit lost
		  answers: 1 grants, 1 records
	`,
	"the agent leaves when it was told": `
		> n1 connects in quarantine
		> release n1
		  reads nodes/n1/spec
		> the store answers
		  reads nodes/n1/identity
		> the store answers
		  tells n1: tell everything
		> n1 tells all
		  writes tx/back RELEASING, units/default/alloc/back/0
		> the store answers
		  reads nodes/n1/identity
		> the store answers
		  tells n1: adopted nothing, released nothing
		  logs node_reconciled
		> n1 leaves
		> 10 s pass
		  answers 409: the agent of node n1 has not registered since it was told, if it was; ask again: what was adopted is not adopted twice
	`,
	"the node is deleted while registrations are read": `
		> n1 connects in quarantine: lost 0
		> adopt n1
		  reads nodes/n1/spec
		> the store answers
		  reads nodes/n1/identity
		> n1 leaves
		> n1 is deleted
		> the store answers
		  answers 404: node n1 not found
	`,
	"the node is deleted before its agent has told": `
		> n1 connects in quarantine: lost 0
		> adopt n1
		  reads nodes/n1/spec
		> the store answers
		  reads nodes/n1/identity
		> the store answers
		  tells n1: tell everything
		> n1 leaves
		> n1 is deleted
		  answers 404: node n1 not found
	`,
	"the node is deleted while records are read": `
		> n1 connects in quarantine: lost 0
		> adopt n1
		  reads nodes/n1/spec
		> the store answers
		  reads nodes/n1/identity
		> the store answers
		  tells n1: tell everything
		> n1 tells all
		  reads tx/lost
		> n1 leaves
		> n1 is deleted
		> the store answers
		  answers 404: node n1 not found
	`,
	"the node is deleted when it was told": `
		> n1 connects in quarantine
		> release n1
		  reads nodes/n1/spec
		> the store answers
		  reads nodes/n1/identity
		> the store answers
		  tells n1: tell everything
		> n1 tells all
		  writes tx/back RELEASING, units/default/alloc/back/0
		> the store answers
		  reads nodes/n1/identity
		> the store answers
		  tells n1: adopted nothing, released nothing
		  logs node_reconciled
		> n1 leaves
		> n1 is deleted
		  answers 404: node n1 not found
	`,
	"the gang's other node is deleted before its agent is asked": `
		> n1 connects in quarantine: shared 0
		> n2 connects in quarantine: shared 1
		> adopt n1
		  reads nodes/n1/spec
		> the store answers
		  reads nodes/n1/identity
		> the store answers
		  reads nodes/n2/spec
		> the store answers
		  reads nodes/n2/identity
		> the store answers
		  tells n1: tell everything
		> n2 leaves
		> n2 is deleted
		> n1 tells all
		  answers 409: the agent of node n2 does not say what it holds: ask again when it is connected
	`,
	"the gang's other node is deleted after its agent has told": `
		> n1 connects in quarantine: shared 0
		> n2 connects in quarantine: shared 1
		> adopt n1
		  reads nodes/n1/spec
		> the store answers
		  reads nodes/n1/identity
		> the store answers
		  reads nodes/n2/spec
		> the store answers
		  reads nodes/n2/identity
		> the store answers
		  tells n1: tell everything
		> n1 tells all
		  tells n2: tell everything
		> n2 tells all
		  reads tx/shared
		> n2 leaves
		> n2 is deleted
		> the store answers
		  answers 409: shared of node n1 cannot be adopted now: the agent of node n2 is not registered as what it is. Nothing was changed; mend that and ask again, or release
	`,
	"an agent tells all when the patience is over": `
		> n1 connects in quarantine: lost 0
		> adopt n1
		  reads nodes/n1/spec
		> the store answers
		  reads nodes/n1/identity
		> the store answers
		  tells n1: tell everything
		> 10 s pass
		  answers 409: the agent of node n1 does not say what it holds: ask again when it is connected
		> n1 tells all
		> look n1
		  reads nodes/n1/spec
		> the store answers
		  reads nodes/n1/identity
		> the store answers
		  tells n1: tell everything
		> n1 tells all
		  reads tx/lost
		> the store answers
		  answers: 1 grants, 1 records
	`,
	"the patience with all agents together is one": `
		> n1 connects in quarantine: shared 0
		> n2 connects in quarantine: shared 1
		> release n1
		  reads nodes/n1/spec
		> the store answers
		  reads nodes/n1/identity
		> the store answers
		  reads nodes/n2/spec
		> the store answers
		  reads nodes/n2/identity
		> the store answers
		  tells n1: tell everything
		> 6 s pass
		> n1 tells all
		  tells n2: tell everything
		> 6 s pass
		  answers 409: the agent of node n2 does not say what it holds: ask again when it is connected
	`,
	"the patience with the registration is another": `
		> n1 connects in quarantine
		> release n1
		  reads nodes/n1/spec
		> the store answers
		  reads nodes/n1/identity
		> the store answers
		  tells n1: tell everything
		> 6 s pass
		> n1 tells all
		  writes tx/back RELEASING, units/default/alloc/back/0
		> the store answers
		  reads nodes/n1/identity
		> the store answers
		  tells n1: adopted nothing, released nothing
		  logs node_reconciled
		> 6 s pass
		> n1 registers
		  tells n1: release back, StoreRestored
		  answers: 0 grants, 1 records
		> 60 s pass
	`,
	"an agent that registers says nothing": `
		> n1 connects in quarantine: lost 0
		> adopt n1
		  reads nodes/n1/spec
		> the store answers
		  reads nodes/n1/identity
		> the store answers
		  tells n1: tell everything
		> n1 is out of quarantine and registers
		> n1 tells all
		  answers 409: the agent of node n1 is registering and does not say what it holds: ask again
	`,
	"an agent that registers after its registration was read keeps its grants from being adopted": `
		> n1 connects in quarantine: lost 0
		> adopt n1
		  reads nodes/n1/spec
		> the store answers
		  reads nodes/n1/identity
		> the store answers
		  tells n1: tell everything
		> n1 registers elsewhere
		> n1 tells all
		  reads tx/lost
		> the store answers
		  writes tx/back RELEASING, units/default/alloc/back/0
		> the store answers
		  writes nodes/n1/tx/lost, tx/lost COMMITTED, units/default/alloc/lost/0
		> the store answers
		  answers 409: lost: something changed while its record was made again (<nil>); ask again
		> look n1
		  reads nodes/n1/spec
	`,
	"a gang's other node is deleted while a third node's agent is asked": `
		> n1 connects in quarantine: shared 0
		> n2 connects in quarantine: shared 1
		> n3 connects in quarantine: shared 2
		> look n1
		  reads nodes/n1/spec
		> the store answers
		  reads nodes/n1/identity
		> the store answers
		  reads nodes/n2/spec
		> the store answers
		  reads nodes/n2/identity
		> the store answers
		  reads nodes/n3/spec
		> the store answers
		  reads nodes/n3/identity
		> the store answers
		  tells n1: tell everything
		> n1 tells all
		  tells n2: tell everything
		> n2 tells all
		  tells n3: tell everything
		> n2 leaves
		> n2 is deleted
		> n3 tells all
		  answers 409: the agent of node n2 is registering and does not say what it holds: ask again
	`,
}
