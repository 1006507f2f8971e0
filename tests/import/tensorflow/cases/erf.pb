
;
x0Placeholder*
dtype0*
shape:

ErfErfx0*
T0
"
IdentityIdentityErf*
T0