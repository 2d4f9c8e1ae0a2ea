// Prints what shared informers of client-go see through a server: SYNCED once all have their first list, and each
// event as ADDED, MODIFIED or DELETED with the kind and the key. It runs until it is killed.
//
// usage: informer KUBECONFIG SERVER CA
package main

import (
	"fmt"
	"log"
	"os"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	if len(os.Args) != 4 {
		log.Fatal("usage: informer KUBECONFIG SERVER CA")
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	config.Host, config.CAFile, config.CAData = os.Args[2], os.Args[3], nil
	factory := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(config), 0)
	core := factory.Core().V1()
	for kind, informer := range map[string]cache.SharedIndexInformer{
		"namespaces": core.Namespaces().Informer(),
		"configmaps": core.ConfigMaps().Informer(),
	} {
		if _, err := informer.AddEventHandler(printing(kind)); err != nil {
			log.Fatal(err)
		}
	}
	never := make(chan struct{})
	factory.Start(never)
	factory.WaitForCacheSync(never)
	fmt.Println("SYNCED")
	<-never
}

func printing(kind string) cache.ResourceEventHandler {
	show := func(event string, object any) {
		key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(event, kind, key)
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { show("ADDED", object) },
		UpdateFunc: func(_, object any) { show("MODIFIED", object) },
		DeleteFunc: func(object any) { show("DELETED", object) },
	}
}
