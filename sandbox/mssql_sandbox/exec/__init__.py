"""Execution: syntax trees to closures and plans, statements, control of flow, procedures, sessions.

Uses engine/ and tsql/. Does not know the wire protocol, nor what the catalogue's views and procedures mean.

The rooms, lowest first; each imports what stands before it, none what stands behind it:

* what everybody meets: `flow` (pauses, jumps), `context`, `scope`, `names`, `variables`, `language`
* `failures`, `transactions`, `session_state`: what a session is to those who run on it
* `expressions/`: closures made of closures
* `compiler`: what compilation knows around a statement; `modules`: what the database keeps of users' modules
* `tables/`: making tables and complete rows; `routine`: statements with their variables, and one run of them
* `interpreter`: lists of statements; `functions`: bodies of users' functions; `sprocs/`: procedures of the server
* `query/`: operators, and the planners that make them; `calls/`: arguments, procedures, prepared statements
* `compiling/`: one function per kind of expression; `statements/`: one per kind of statement
* `apicursors/`: cursors as drivers ask for them
* `dialect`: the tables of the language, made out of all of these; `session`: carries them; `lanes`: several requests

Expressions hold queries, queries functions, functions statements, and statements all of them. That recursion goes
through the tables (`language.Language`): who meets a node of another kind looks up what to do with it, so that no
import goes back. Types of arguments may be named from above, for the type checker only.
"""
