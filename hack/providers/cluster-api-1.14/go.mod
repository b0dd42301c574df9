// The Cluster API that follows the one in the repository's go.mod: TestEnrolmentOnARealHub reads its definition of Cluster. Nothing of
// it is compiled.
module github.com/masthead-dev/masthead/hack/providers/cluster-api-1.14

go 1.26.0

require sigs.k8s.io/cluster-api v1.14.2
