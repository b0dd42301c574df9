// Copyright The Masthead Authors.
// SPDX-License-Identifier: Apache-2.0

// Package localfleet runs a fleet on one machine: a hub and workload clusters, each a real Kubernetes control plane
// made of processes, without containers and without downloads beyond Go modules. The demo, the tests and the benchmarks
// use it, and cmd/localfleet is its command. The programs come from hack/build-controlplane.sh. It needs Linux, because
// it identifies processes by /proc.
//
//	fleet, err := localfleet.Up(ctx, localfleet.Options{
//		Dir: t.TempDir(), Workloads: localfleet.WorkloadNames(2), WithKwok: true, StopWithParent: true,
//	})
//	defer fleet.Down(ctx)
//	hub, err := fleet.Config(localfleet.HubName)
//
// # What runs
//
// The hub: etcd, kube-apiserver, kube-controller-manager and, if the options enable them, Crossplane core with the
// fleet's own composition function (package function) and Cluster API core. The CRDs of Cluster API, of the cluster
// inventory and of Crossplane are installed from the source of the modules that the repository pins.
//
// A workload cluster: etcd, kube-apiserver, kube-controller-manager and, if the options enable it, kwok, which makes
// one node and every pod Ready. There is no scheduler; an admission policy binds pods to the node.
//
// Each workload cluster is a Cluster (v1beta2) in the hub, with an infrastructure and a control plane of two small CRDs
// that fulfil the contract of Cluster API, so that the real Cluster API core sets its status. The Secret
// <name>-kubeconfig holds a token of the service account masthead-system/masthead in the workload cluster, which has
// the rights that Options.WorkloadRBAC gives it and, where Cluster API core runs, those that core itself needs (nodes,
// and the path /): both use the one Secret.
//
// # What is guaranteed
//
// Every server listens on 127.0.0.1, except the health and metrics ports of Crossplane and the webhook port of Cluster
// API, because these programs have no flag for the address. Servers are authenticated with certificates, clients with
// certificates or tokens, and each cluster has its own authorities; authorization is RBAC. Cluster administrators and
// the controllers of the hub are in system:masters; the controllers of kube-controller-manager have their own service
// accounts.
//
// Ports are chosen below the range for outgoing connections, and chosen again if another program takes one first. Up
// returns when everything is ready, which it finds out by polling, never by waiting for a fixed time. Its errors
// contain the end of the log of the process that failed. The next Up stops and removes what a fleet that crashed has
// left in the folder.
//
// A process is signalled only after it was recognised by its id, start time, program and boot of the machine, so that a
// process that was given the id of a dead one is safe. With Options.StopWithParent the kernel kills the fleet when its
// parent ends; otherwise it keeps running until Down. After Down no process and no file of the fleet is left.
//
// # Flags and memory
//
// The control planes are set up like any other, with these exceptions. etcd: --unsafe-no-fsync (nothing survives the
// machine anyway), --snapshot-count=2000 and compaction every ten minutes. kube-apiserver: GOGC=50,
// --endpoint-reconciler-type=none (the address of its endpoint would be a loopback address), --event-ttl=15m, no
// TaintNodesByCondition; with Options.Audit a log at level Metadata. kube-controller-manager: no leader election, no
// port, and without the controllers for nodes, volumes, load balancers, certificates and autoscaling. Crossplane:
// --package-runtime=External, no webhooks. Cluster API: no leader election, no webhook configurations, diagnostics
// off. With Options.Fast, which benchmarks and the end-to-end tests use, kube-apiserver and etcd run with GOGC=200:
// otherwise benchmarks measure how API servers collect garbage.
//
// Resident memory in MB, idle, Kubernetes v1.36.3, Crossplane v2.3.0, Cluster API v1.13.6, kwok v0.8.0 on linux/amd64:
//
//	                         hub   workload cluster
//	etcd                      68     47
//	kube-apiserver           378    250
//	kube-controller-manager  110    107
//	crossplane                75      -
//	cluster-api               66      -
//	localfleet-function       27      -
//	kwok                       -     49
//	together                 724    453
//
// An idle workload cluster takes two to three percent of a processor core, the hub about four. A hub with all
// components and two workload clusters are ready in 10 to 20 seconds on two cores, depending on the other load of the
// machine; the command's `up` on a fleet that runs takes a tenth of a second.
package localfleet
