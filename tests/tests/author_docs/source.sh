# Two builds of a plugin in C. The source is that of the second one.
toolgate new hello --lang c
(cd hello && toolgate build)
cp hello/build/hello.wasm plugins/hello.wasm
old=$(digest plugins/hello.wasm)
sed -i 's/Counts/Totals/' hello/plugin.c
(cd hello && toolgate build)
new=$(digest hello/build/hello.wasm)
mkdir source
mv hello source
source=$PWD/source/hello
git -C "$source" init -q
git -C "$source" add .
git -C "$source" -c user.name=ann -c user.email=ann@example.org commit -q -m hello
