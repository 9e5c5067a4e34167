package lead

// reconciliationScripts are reconciliations as transcripts: lines with > are the
// leader's inputs, the lines below an input are its effects.
var reconciliationScripts = map[string]string{
	"what is lost is adopted, what came back is ended": `
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
		> the store answers
		  reads nodes/n1/identity
		> the store answers
		  tells n1: adopted lost, released nothing
		  logs node_reconciled
		> n1 registers
		  tells n1: release back, StoreRestored
		  tells n1: commit lost
		  answers: 1 grants, 1 records
	`,
	"what is lost is disowned": `
		> n1 connects in quarantine: lost 0
		> release n1
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
		  writes tx/lost ABORTED
		> the store answers
		  reads nodes/n1/identity
		> the store answers
		  tells n1: adopted nothing, released lost
		  logs node_reconciled
		> n1 registers
		  tells n1: release back, StoreRestored
		  answers: 1 grants, 1 records
	`,
	"a look changes nothing": `
		> n1 connects in quarantine: lost 0
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
	"a gang's nodes are read and asked one by one, and one outside quarantine is told": `
		> n1 connects in quarantine: lost 0, shared 0
		> n2 connects: shared 1
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
		> n2 tells all
		> n1 tells all
		  tells n2: tell everything
		> n2 tells all
		  reads tx/lost
		> the store answers
		  reads tx/shared
		> the store answers
		  writes tx/back RELEASING, units/default/alloc/back/0
		> the store answers
		  writes tx/lost ABORTED
		> the store answers
		  writes tx/shared ABORTED
		> the store answers
		  tells n2: release shared, StoreRestored
		  reads nodes/n1/identity
		> the store answers
		  tells n1: adopted nothing, released lost and shared
		  logs node_reconciled
		> n1 registers
		  tells n1: release back, StoreRestored
		  answers: 2 grants, 1 records
	`,
	"a gang whose other node is not heard is not adopted": `
		> n1 connects in quarantine: shared 0
		> adopt n1
		  reads nodes/n1/spec
		> the store answers
		  reads nodes/n1/identity
		> the store answers
		  tells n1: tell everything
		> n1 tells all
		  reads tx/shared
		> the store answers
		  answers 409: shared of node n1 cannot be adopted now: node n2 is not heard and may hold members of it: bring it back, or say that it is dead with muster fence n2 --confirm-dead. Nothing was changed; mend that and ask again, or release
	`,
	"one at a time, and what else happens is not held up": `
		> n1 connects in quarantine: lost 0
		> n2 connects in quarantine
		> adopt n1
		  reads nodes/n1/spec
		> look n2
		  answers 409: another node is being reconciled; ask again
		> the leader does its rounds
		> the store answers
		  reads nodes/n1/identity
		> back's owner ends it
		  writes tx/back RELEASING, units/default/alloc/back/0
		> the store answers
		  tells n1: tell everything
		> n2 leaves
		> the store answers
		> n1 tells all
		  reads tx/lost
		> the store answers
		  writes nodes/n1/tx/lost, tx/lost COMMITTED, units/default/alloc/lost/0
		> the store answers
		  reads nodes/n1/identity
		> the store answers
		  tells n1: adopted lost, released nothing
		  logs node_reconciled
		> n1 registers
		  tells n1: release back, as its owner asked
		  tells n1: commit lost
		  answers: 1 grants, 1 records
		> look n1
		  reads nodes/n1/spec
		> look n3
		  answers 404: node n3 not found
	`,
	"a gang is adopted whole, and its other node needs no record then": `
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
		> the store answers
		  writes tx/back RELEASING, units/default/alloc/back/0
		> the store answers
		  writes nodes/n1/tx/shared, nodes/n2/tx/shared, tx/shared COMMITTED, units/default/job/shared/0, jobs/default/shared
		> the store answers
		  reads nodes/n1/identity
		> the store answers
		  tells n1: adopted shared, released nothing
		  logs node_reconciled
		> n1 registers
		  tells n1: release back, StoreRestored
		  tells n1: commit shared
		  answers: 1 grants, 1 records
		> look n2
		  reads nodes/n2/spec
		> the store answers
		  reads nodes/n2/identity
		> the store answers
		  reads nodes/n1/spec
		> the store answers
		  reads nodes/n1/identity
		> the store answers
		  tells n2: tell everything
		> n2 tells all
		  tells n1: tell everything
		> n1 tells all
		  reads tx/shared
		> the store answers
		  answers: 1 grants, 0 records
	`,
	"a registration that cannot be read": `
		> n1 connects in quarantine: lost 0
		> nobody can read nodes/n1/identity
		> adopt n1
		  reads nodes/n1/spec
		> the store answers
		  reads nodes/n1/identity
		> the store answers
		  answers 500: node n1: decode /registry/nodes/n1/identity as record.NodeIdentity: unexpected end of JSON input
	`,
	"a record that cannot be read": `
		> n1 connects in quarantine: lost 0
		> nobody can read tx/lost
		> adopt n1
		  reads nodes/n1/spec
		> the store answers
		  reads nodes/n1/identity
		> the store answers
		  tells n1: tell everything
		> n1 tells all
		  reads tx/lost
		> the store answers
		  answers 500: node n1: decode /registry/tx/lost as record.Tx: unexpected end of JSON input
	`,
	"a unit that is forgotten while its record is made ends the term": `
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
		> lost is forgotten
		> the store answers
		  ends the term: unit default/alloc/lost/0 was forgotten while the record of u-lost.3.1.01000000000000000000000000000000 was made again
	`,
}
