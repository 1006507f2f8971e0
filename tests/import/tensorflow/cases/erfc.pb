
;
x0Placeholder*
dtype0*
shape:

ErfcErfcx0*
T0
#
IdentityIdentityErfc*
T0