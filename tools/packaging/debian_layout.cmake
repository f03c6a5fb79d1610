# Run by cpack over the staged files of a .deb: what Debian wants elsewhere, or packed.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()
set(usr ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr)
if(NOT EXISTS ${usr}/bin/rubato)
  message(FATAL_ERROR "${usr}/bin/rubato is not there: the layout of the staged files has changed")
endif()

file(MAKE_DIRECTORY ${usr}/share/zsh/vendor-completions)
file(RENAME ${usr}/share/zsh/site-functions/_rubato ${usr}/share/zsh/vendor-completions/_rubato)
file(REMOVE_RECURSE ${usr}/share/zsh/site-functions)

file(MAKE_DIRECTORY ${usr}/lib/python3/dist-packages)
file(RENAME ${usr}/share/rubato/python/rubato ${usr}/lib/python3/dist-packages/rubato)
file(REMOVE_RECURSE ${usr}/share/rubato/python)

# Debian has the licence at one place for all packages; the file `copyright` says so.
file(REMOVE ${usr}/share/doc/rubato/LICENSE)
file(RENAME ${usr}/share/doc/rubato/CHANGELOG.md ${usr}/share/doc/rubato/changelog)
file(GLOB pages ${usr}/share/man/man1/*.1)
execute_process(COMMAND gzip -9n ${pages} ${usr}/share/doc/rubato/changelog COMMAND_ERROR_IS_FATAL ANY)
