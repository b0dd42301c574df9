// The Crossplane providers and Cluster API providers whose CRDs the tests of the importer use: internal/test/providercrds reads them
// out of the source of these modules. Nothing of them is compiled.
module github.com/masthead-dev/masthead/hack/providers

go 1.26.0

require (
	github.com/upbound/provider-aws/v2 v2.7.0
	github.com/upbound/provider-azure v1.13.0
	github.com/upbound/provider-gcp v1.14.0
	sigs.k8s.io/cluster-api-provider-aws/v2 v2.13.0
	sigs.k8s.io/cluster-api-provider-azure v1.23.0
	sigs.k8s.io/cluster-api-provider-gcp v1.13.1
)
