// The peer of the benchmark: kube-bind's konnector.
module github.com/masthead-dev/masthead/test/bench/sync/kubebind

go 1.26

require github.com/kube-bind/kube-bind v0.3.0
