import { patient } from '../../index';
export = patient;
